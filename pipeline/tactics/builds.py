"""From messages to builds: which lines belong to which build, and what each form of message means."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, cast

import msgspec

from pipeline.records.tactics import Truncated
from pipeline.tactics.forms import COMPILED, FORMS, VERBOSE_FORMS
from pipeline.tactics.prefixes import Severity
from pipeline.tactics.sparsity import RawList
from pipeline.tactics.tables import Tables

Mode = Literal["enabled", "disabled", "forced"]


class Message(msgspec.Struct):
    """One logical line."""

    line: int
    text: str
    """Without prefix."""
    width: int
    """Length of its first physical line."""
    severity: Severity | None = None
    process: str | None = None
    headed: bool = False
    """Whether a prefix stands before it."""
    whole: bool = True
    followers: list[str] = []


class DumpLayer(msgspec.Struct):
    """One layer of an engine dump or layer info."""

    name: str
    line: int | None
    source: int
    type: str | None = None
    tactic_name: str | None = None
    tactic_id: str | None = None
    sparse_weights: bool | None = None
    onnx_nodes: list[str] = []
    formats: str | None = None
    detailed: bool = True


class BuildLog(msgspec.Struct):
    """Everything that the log says of one build."""

    source: int
    process: str | None = None
    result: Literal["passed", "failed", "cut"] | None = None
    closed: bool = False
    loads_plan: bool = False
    tensorrt: str | None = None
    command: str | None = None
    verbose: bool = False
    info: bool = False
    sparsity: Mode | None = None
    lists: list[RawList] = []
    tables: Tables = msgspec.field(default_factory=Tables)
    dump: list[DumpLayer] = []
    truncated: list[Truncated] = []
    lines: int = 0

    @property
    def is_build(self) -> bool:
        """Whether this is evidence of a build at all."""
        return not self.loads_plan and bool(
            self.command is not None or self.lists or self.tables.began or self.dump or self.closed or self.sparsity
        )


def version_of(number: str) -> str:
    """TensorRT's version from the digits of trtexec's banner: 8602 is 8.6.2, 100300 is 10.3.0."""
    if len(number) >= 6:
        return f"{int(number[:-4])}.{int(number[-4:-2])}.{int(number[-2:])}"
    return f"{number[0]}.{int(number[1:2] or 0)}.{int(number[2:] or 0)}"


class Stream:
    """The messages of one process of one file, in order."""

    def __init__(self, source: int, process: str | None, builds: list[BuildLog]) -> None:
        self.source = source
        self.process = process
        self.builds = builds
        self.build = BuildLog(source, process)
        self._in_dump = False

    # ---- boundaries

    def _start(self) -> BuildLog:
        self.build = BuildLog(self.source, self.process)
        self._in_dump = False
        return self.build

    def finish(self) -> None:
        """The end of the stream."""
        if self.build.is_build or self.build.loads_plan:
            self._keep()

    def _tuning(self) -> Tables:
        """The tables that a timing line belongs to: after a closing line it begins another build."""
        if self.build.closed:
            self._start()
        self._keep()
        return self.build.tables

    def _keep(self) -> None:
        if not any(build is self.build for build in self.builds):
            self.builds.append(self.build)

    # ---- messages

    def take(self, message: Message) -> None:
        """Understand one message."""
        form = find_form(message.text)
        if form is None:
            return
        match = COMPILED[form].match(message.text)
        if match is None:
            return
        handler = HANDLERS.get(form)
        if handler is not None:
            handler(self, match, message)
        if form in VERBOSE_FORMS:
            self.build.verbose = True

    def banner(self, match: re.Match[str], message: Message) -> None:
        if self.build.is_build or self.build.loads_plan:
            self._start()
        build = self.build
        build.command = (match["command"] or "").strip()
        build.tensorrt = version_of(match["version"]) if match["version"] else None
        build.loads_plan = "--loadEngine" in build.command
        self._keep()

    def verdict(self, match: re.Match[str], message: Message) -> None:
        self.build.closed = True
        self.build.result = "failed" if match["word"] == "FAILED" else "passed"
        self._keep()

    def closing(self, match: re.Match[str], message: Message) -> None:
        if not self.build.loads_plan:
            self.build.closed = True
            self._keep()

    def failed(self, match: re.Match[str], message: Message) -> None:
        self.build.result = "failed"

    def option_sparsity(self, match: re.Match[str], message: Message) -> None:
        self.build.sparsity = cast(Mode, match["mode"].lower())
        self._keep()

    def sparsity(self, match: re.Match[str], message: Message) -> None:
        raw = RawList(self.source, message.line, message.text, message.width, message.whole, message.followers)
        if raw.kind == "eligible" and self.build.closed and any(known.kind == "eligible" for known in self.build.lists):
            self._start()
        open_layer = self.build.tables.open_layer
        raw.region = open_layer if open_layer and "ForeignNode" in open_layer else None
        self.build.lists.append(raw)
        self.build.info = True
        self._keep()

    def costs(self, match: re.Match[str], message: Message) -> None:
        self._tuning().costs(match["layer"].strip(), message.line)

    def combination(self, match: re.Match[str], message: Message) -> None:
        self._tuning().combination(match["format"], message.line)

    def reformat(self, match: re.Match[str], message: Message) -> None:
        self._tuning().reformat()

    def runner(self, match: re.Match[str], message: Message) -> None:
        self._tuning().timing_runner(match["layer"], match["runner"], message.line)

    def tactic_named(self, match: re.Match[str], message: Message) -> None:
        self._tuning().timed(match["name"], match["id"].lower(), float(match["ms"]), message.line)

    def tactic(self, match: re.Match[str], message: Message) -> None:
        self._tuning().timed(None, match["id"].lower(), float(match["ms"]), message.line)

    def tactic_skipped(self, match: re.Match[str], message: Message) -> None:
        self._tuning().skip()

    def set_name(self, match: re.Match[str], message: Message) -> None:
        self._tuning().set_name(match["layer"], match["name"], match["id"].lower() if match["id"] else None)

    def fastest(self, match: re.Match[str], message: Message) -> None:
        if not self.build.closed:
            self.build.tables.fastest(match["layer"])

    def chose(self, match: re.Match[str], message: Message) -> None:
        if not self.build.closed:
            self.build.tables.chose(match["runner"], match["id"].lower(), message.line)
            self._keep()

    def dump_8(self, match: re.Match[str], message: Message) -> None:
        self._keep()

    def dump_8_layer(self, match: re.Match[str], message: Message) -> None:
        layer = DumpLayer(match["name"], message.line, self.source, match["type"], None, match["id"].lower(), formats=match["io"])
        self.build.dump.append(layer)
        self._keep()

    def dump_10_layer(self, match: re.Match[str], message: Message) -> None:
        self.build.dump.append(dump_10_layer(match["name"], match["type"], match["rest"], message.line, self.source))
        self._keep()


_TACTIC_NAME = re.compile(r"\bTacticName: ([^,]*?)(?:, |$)")
_TACTIC_VALUE = re.compile(r"\bTacticValue: (0x[0-9a-fA-F]+|-?\d+)")
_SPARSE = re.compile(r"\bHasSparseWeights: (\d)")
_METADATA = re.compile(r"\bMetadata: (.*)$", re.DOTALL)
_ONNX = re.compile(r"\[ONNX Layer: ([^\]\x1e]*)\]")


def onnx_nodes(metadata: str) -> list[str]:
    """The ONNX nodes that an engine layer's Metadata names."""
    return list(dict.fromkeys(_ONNX.findall(metadata)))


def dump_10_layer(name: str, kind: str, rest: str, line: int, source: int) -> DumpLayer:
    """One line of TensorRT 10's engine dump."""
    tactic, value, sparse, metadata = _TACTIC_NAME.search(rest), _TACTIC_VALUE.search(rest), _SPARSE.search(rest), _METADATA.search(rest)
    return DumpLayer(
        name,
        line,
        source,
        kind,
        tactic[1] if tactic else None,
        value[1].lower() if value else None,
        sparse[1] != "0" if sparse else None,
        onnx_nodes(metadata[1]) if metadata else [],
    )


HANDLERS: dict[str, Callable[[Stream, re.Match[str], Message], None]] = {
    "banner": Stream.banner,
    "verdict": Stream.verdict,
    "closing": Stream.closing,
    "closing-polygraphy": Stream.closing,
    "build-failed": Stream.failed,
    "no-implementation": Stream.failed,
    "option-sparsity": Stream.option_sparsity,
    "sparsity": Stream.sparsity,
    "costs": Stream.costs,
    "combination": Stream.combination,
    "reformat": Stream.reformat,
    "runner": Stream.runner,
    "tactic-named": Stream.tactic_named,
    "tactic": Stream.tactic,
    "tactic-skipped": Stream.tactic_skipped,
    "set-name": Stream.set_name,
    "fastest": Stream.fastest,
    "chose": Stream.chose,
    "dump-8": Stream.dump_8,
    "dump-8-layer": Stream.dump_8_layer,
    "dump-10-layer": Stream.dump_10_layer,
}


def find_form(text: str) -> str | None:
    """The name of the form of a message; None where the reader knows none."""
    for key in (text[:1], ""):
        for name, needle in _BY_FIRST.get(key, ()):
            if needle in text and COMPILED[name].match(text):
                return name
    return None


_BY_FIRST: dict[str, list[tuple[str, str]]] = {}
for _form in FORMS:
    _BY_FIRST.setdefault(_form.first, []).append((_form.name, _form.needle))
