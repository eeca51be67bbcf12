"""What is known of one build while its log is read, and of one engine layer."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from pipeline.records.tactics import Conflict, Truncated
from pipeline.tactics.combinations import LINE, STRIDE
from pipeline.tactics.facts import Facts
from pipeline.tactics.names import Known, is_damaged
from pipeline.tactics.prefixes import Severity
from pipeline.tactics.raw_lists import RawList
from pipeline.tactics.tables import Tables

Verdict = Literal["passed", "failed"]
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
    whole: bool = True
    followers: list[str] = []
    level: Literal["info", "verbose"] | None = None
    """What the prefix proves of TensorRT's log level."""
    producer: str | None = None
    full: int = 0
    """Length of its first physical line with the blanks at its end; 0 where lines were joined."""


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
    verdict: Verdict | None = None
    """What trtexec says at the end of the run."""
    closed: bool = False
    lists_at_close: int = 0
    """How many summary messages stood before the last closing line."""
    loads_plan: bool = False
    tensorrt: str | None = None
    command: str | None = None
    command_line: int = 0
    verbose: bool = False
    info: bool = False
    producers: dict[str, int] = {}
    facts: Facts = msgspec.field(default_factory=Facts)
    profile_ms: dict[str, float] = {}
    """Engine layer -> average ms of `--dumpProfile` or exportProfile."""
    layer_info: list[DumpLayer] = []
    joined: list[int] = []
    """Sources other than the log."""
    listed: set[str] = set()
    """Names of the summary's lists, once they are read."""
    calibration_tactics: int = 0
    uid: str | None = None
    sparsity: Mode | None = None
    lists: list[RawList] = []
    tables: Tables = msgspec.field(default_factory=Tables)
    dump: list[DumpLayer] = []
    dump_alone: bool = False
    """Whether the dump stands where neither a summary nor a closing line stood before it: lines between it and the tables are missing."""
    truncated: list[Truncated] = []
    conflicts: list[Conflict] = []
    """Found while the log was read."""

    @property
    def is_build(self) -> bool:
        """Whether this is evidence of a build at all."""
        shown = self.command is not None or self.lists or self.tables.began or self.dump or self.layer_info or self.closed or self.sparsity
        cached = self.facts.timing_cache.get("mode") in ("local", "global")  # only builders say so
        more = self.calibration_tactics or cached or (self.profile_ms and self.joined)
        return bool(shown or more) and not self.loads_plan

    @property
    def tables_ended(self) -> bool:
        """Whether something stands behind the timing tables that is printed when all layers were timed."""
        last = max([*self.tables.line[-1:], *self.tables.rows[LINE - STRIDE :][:1]], default=0)
        return any(raw.line > last for raw in self.lists) or (self.closed and not self.dump_alone)

    def layer_names(self) -> set[str]:
        """Every engine layer that this build's own log or layer info names."""
        return (
            {layer.name for layer in self.dump}
            | {layer.name for layer in self.layer_info}
            | self.tables.layer_names()
            | set(self.profile_ms)
        )

    def drop_beginnings(self) -> list[Truncated]:
        """Costs lines may be cut: a name on which nothing was timed, and that is the beginning of another one, is none."""
        timed = self.tables.layer_names(timed=True)
        known = Known({layer.name for layer in [*self.dump, *self.layer_info]} | timed | self.listed | set(self.profile_ms))
        for name in self.tables.layer_names() - known.names:
            if known.is_beginning(name):
                self.tables.beginnings.add(name)
        return [Truncated(source=self.source, line=None, text=name) for name in sorted(self.tables.beginnings)]

    def close(self) -> None:
        """A line that ends a build."""
        self.closed, self.lists_at_close = True, len(self.lists)

    def forget(self) -> None:
        """Nothing that was read is known to be of this run, but what its banner and its verdict say."""
        empty = BuildLog(self.source)
        for field in self.__struct_fields__:
            if field not in _OF_THE_RUN:
                setattr(self, field, getattr(empty, field))
        self.tables.headless = True

    def calibrated(self) -> None:
        """What was built so far was the calibration engine."""
        self.calibration_tactics += self.tables.cursor
        self.tables, self.lists, self.dump, self.result = Tables(), [], [], None
        self.closed, self.lists_at_close = False, 0


_OF_THE_RUN = ("source", "process", "result", "verdict", "loads_plan", "tensorrt", "command", "command_line")


def version_of(number: str) -> str:
    """TensorRT's version from the digits of trtexec's banner: 8602 is 8.6.2, 100300 is 10.3.0."""
    if len(number) >= 6:
        return f"{int(number[:-4])}.{int(number[-4:-2])}.{int(number[-2:])}"
    return f"{number[0]}.{int(number[1:2] or 0)}.{int(number[2:] or 0)}"


_NO_LAYER = re.compile(r" (?:to|from) nvm$| copy finish$")
_TACTIC_NAME = re.compile(r" TacticName: ([^,]*)(?:, |$)")
_TACTIC_VALUE = re.compile(r" TacticValue: (0x[0-9a-fA-F]+|-?\d+)(?:, |$)")
_SPARSE = re.compile(r" HasSparseWeights: (\d)")
_METADATA = re.compile(r" Metadata: (.*)$", re.DOTALL)
_ONNX = re.compile(r"\[ONNX Layer: ([^\x1e]*?)\](?=\x1e|\[\w+ Layer: |, |\s*$)")
"""A node's name may hold brackets."""


def onnx_nodes(metadata: str) -> list[str]:
    """The ONNX nodes that an engine layer's Metadata names."""
    return list(dict.fromkeys(_ONNX.findall(metadata)))


def kernel_name(text: str | None) -> str | None:
    """A kernel's name as printed; None for a cut or damaged one, since what is missing may be what tells its class."""
    return None if not text or is_damaged(text) else text


def dump_10_layer(name: str, kind: str, rest: str, line: int, source: int) -> DumpLayer:
    """One line of TensorRT 10's engine dump."""
    fields = f" {rest}"  # each begins with a blank: a fixed text in front is what makes a search fast
    tactic, value, sparse, metadata = (pattern.search(fields) for pattern in (_TACTIC_NAME, _TACTIC_VALUE, _SPARSE, _METADATA))
    return DumpLayer(
        name,
        line,
        source,
        kind,
        kernel_name(tactic[1]) if tactic else None,
        value[1].lower() if value else None,
        sparse[1] != "0" if sparse else None,
        onnx_nodes(metadata[1]) if metadata else [],
    )


def is_wait(row: str) -> bool:
    """Whether a row of a profile is a wait for the DLA and no layer."""
    return _NO_LAYER.search(row) is not None
