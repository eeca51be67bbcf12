"""From messages to builds: which message belongs to which build, and what each form of message does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from pipeline.records.tactics import Truncated
from pipeline.tactics import tuning
from pipeline.tactics.builds import BuildLog, DumpLayer, Message, Mode, Verdict, dump_10_layer, is_wait, version_of
from pipeline.tactics.combinations import NONE
from pipeline.tactics.forms import LONGEST, TIMED, VERBOSE_FORMS, find_form
from pipeline.tactics.names import CUT, is_damaged, is_torn
from pipeline.tactics.overlap import Runs
from pipeline.tactics.raw_lists import RawList
from pipeline.tactics.tables import Tables

_END_OF_TIMED = re.compile(r"[0-9a-fx]*(?: ?[Tt]?i?m?e?:? ?)?\d*\.?\d+")
"""What a line that times a tactic leaves where its beginning is lost."""
_DOTS = ".…"
_BEGINS_LIKE_TIMED = re.compile(r"T(?:a|\W|$)|[^A-Za-z/]|[A-Z](?:[A-Z\d]|$)|$")
"""A line that lost its end was to time a tactic only where its beginning is that of one, or of a prefix."""
_OTHER_PROGRAM = re.compile(r"\d%|(?:^| )[a-z]{2,} [a-z]{2,}")
"""A progress bar, or prose."""
_OTHER_LAYER = re.compile(r"LayerType: |Layer\(\w+\): ")
"""In the description of a layer: the line of another one was printed within it."""
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{0,18})?")


def _may_time(message: Message) -> bool:
    """Whether a message without form may be what is left of one that timed a tactic, or hold such a one."""
    if message.text.startswith("Skipping ") or (message.text.startswith("Fastest ") and len(message.text) <= LONGEST):
        return False
    text = message.text
    if TIMED in text or is_torn(text.rstrip(_DOTS)) or _END_OF_TIMED.fullmatch(text):
        return True
    if message.whole and not text.endswith(CUT):
        return False
    return _BEGINS_LIKE_TIMED.match(text) is not None and _OTHER_PROGRAM.search(text) is None


class Stream:
    """The messages of one process of one file, in order."""

    def __init__(self, source: int, process: str | None, builds: list[BuildLog]) -> None:
        self.source = source
        self.process = process
        self.builds = builds
        self.build = BuildLog(source, process)
        self._messages = 0
        self.runs = Runs(builds)
        self._profile_columns = 0

    # ---- boundaries

    def _start(self) -> BuildLog:
        self.build = BuildLog(self.source, self.process)
        self._profile_columns = 0
        return self.build

    def finish(self) -> None:
        """The end of the stream."""
        if self.build.is_build or self.build.loads_plan:
            self.keep()
        self.runs.finish()

    def tuning(self) -> Tables:
        """The tables that a timing line belongs to: after a closing line it begins another build."""
        if self.build.closed:
            self._start()
        self.keep()
        tables = self.build.tables
        tables.headless = tables.headless or self._messages == 1
        return tables

    def tuning_tables(self) -> Tables | None:
        """The tables of the build at hand, once timing lines of it were seen; None where the next one would begin a build."""
        return None if self.build.closed or not self.build.tables.began else self.build.tables

    def keep(self) -> None:
        """Count the build at hand among those of the file."""
        if not any(build is self.build for build in self.builds):
            self.builds.append(self.build)

    # ---- messages

    def take(self, message: Message) -> None:
        """Understand one message."""
        self._messages += 1
        self._note(message)
        if self._profile_columns and self._profile_row(message):
            return
        found = find_form(message.text)
        if found is None:
            self.build.facts.take(message.text, self.source, message.line)
            if self.build.tables.began and _may_time(message):
                self.build.tables.doubt()
            return
        form, match = found
        handler = HANDLERS.get(form)
        if handler is not None:
            handler(self, match, message)
        if form in VERBOSE_FORMS:
            self.build.verbose = True
        if form != "device-request":
            self.build.tables.skip_told = False

    def _note(self, message: Message) -> None:
        if message.level:
            self.build.info = True
            self.build.verbose = self.build.verbose or message.level == "verbose"

    def banner(self, match: re.Match[str], message: Message) -> None:
        if self.build.is_build or self.build.loads_plan:
            self._start()
        build = self.build
        build.command = (match["command"] or "").strip()
        build.tensorrt = version_of(match["version"]) if match["version"] else None
        build.command_line = message.line
        build.loads_plan = "--loadEngine" in build.command
        self.keep()
        self.runs.banner(build, message.line)

    def verdict(self, match: re.Match[str], message: Message) -> None:
        result: Verdict = "failed" if match["word"] == "FAILED" else "passed"
        following = self.runs.verdict(self.build, (match["command"] or "").strip(), result, message.line)
        if following is self.build:
            self.keep()
        else:
            self.build, self._profile_columns = following, 0

    def closing(self, match: re.Match[str], message: Message) -> None:
        self.runs.closing(message.text)
        if not self.build.loads_plan:
            self.build.close()
            self.keep()

    def failed(self, match: re.Match[str], message: Message) -> None:
        self.build.result = "failed"

    def no_implementation(self, match: re.Match[str], message: Message) -> None:
        if message.severity in ("E", None):
            self.build.result = "failed"

    def option_sparsity(self, match: re.Match[str], message: Message) -> None:
        if not self.build.loads_plan:  # where a plan is loaded, the line tells the option's default
            self.build.sparsity = cast(Mode, match["mode"].lower())
            self.keep()

    def sparsity(self, match: re.Match[str], message: Message) -> None:
        raw = RawList(self.source, message.line, message.text, message.width, message.whole, message.followers, full=message.full)
        if raw.kind == "eligible" and self.build.closed and any(known.kind == "eligible" for known in self.build.lists):
            self._start()
        elif raw.kind == "selected" and 0 < len(self.build.lists) == self.build.lists_at_close:
            self._start()  # the two messages of a pass are adjacent: the one before it, of another build, is missing
        open_layer = self.build.tables.open_layer
        raw.region = open_layer if open_layer and "ForeignNode" in open_layer else None
        self.build.lists.append(raw)
        self.build.info = True
        self.keep()
        self.runs.listed(self.build)

    def layer_number(self, name: str, message: Message) -> int:
        """The number of a layer's name; a damaged one is no name."""
        if not name or self.is_no_name(name, message):
            return NONE
        return self.build.tables.layers.number(name)

    def is_no_name(self, name: str, message: Message) -> bool:
        """Whether a name is damaged, and therefore only shown as truncated."""
        if message.whole and not is_damaged(name):
            return False
        self.build.truncated.append(Truncated(source=self.source, line=message.line, text=name))
        return True

    def calibration(self, match: re.Match[str], message: Message) -> None:
        self.build.calibrated()

    def deepstream(self, match: re.Match[str], message: Message) -> None:
        """Another inference element, or a second try, is another engine."""
        uid, build = match["uid"], self.build
        again = "rebuild" in message.text or "re-build" in message.text
        if build.is_build and (again or (build.uid is not None and build.uid != uid)):
            build = self._start()
        build.uid = uid

    def profile_begin(self, match: re.Match[str], message: Message) -> None:
        self._profile_columns = 4

    def _profile_row(self, message: Message) -> bool:
        """One row of `--dumpProfile`: the name may hold blanks, so the numbers are taken from the right."""
        text = message.text.strip()
        if "Time (ms)" in text and "Layer" in text:
            self._profile_columns = 4 if "Median" in text else 3
            return True
        words = text.rsplit(None, self._profile_columns)
        if len(words) != self._profile_columns + 1 or not all(_NUMBER.fullmatch(word) for word in words[1:]):
            if not text:
                return True
            self._profile_columns = 0
            return False
        if words[0] == "Total":
            self._profile_columns = 0
        elif not is_wait(words[0]) and not self.is_no_name(words[0], message):
            self.build.profile_ms[words[0]] = float(words[2])
        return True

    def dump_8(self, match: re.Match[str], message: Message) -> None:
        self.keep()

    def dump_8_layer(self, match: re.Match[str], message: Message) -> None:
        if self.is_no_name(match["name"], message) or _OTHER_LAYER.search(match["io"]):
            return
        layer = DumpLayer(match["name"], message.line, self.source, match["type"], None, match["id"].lower(), formats=match["io"])
        self._dumped(layer)

    def dump_10_layer(self, match: re.Match[str], message: Message) -> None:
        if self.is_no_name(match["name"], message) or _OTHER_LAYER.search(match["rest"]):
            return
        self._dumped(dump_10_layer(match["name"], match["type"], match["rest"], message.line, self.source))

    def _dumped(self, layer: DumpLayer) -> None:
        build = self.build
        build.dump_alone = build.dump_alone or not (build.dump or build.closed or build.lists)
        build.dump.append(layer)
        self.keep()


HANDLERS: dict[str, Callable[[Stream, re.Match[str], Message], None]] = {
    **tuning.HANDLERS,
    "banner": Stream.banner,
    "verdict": Stream.verdict,
    "closing": Stream.closing,
    "closing-polygraphy": Stream.closing,
    "build-failed": Stream.failed,
    "build-failed-polygraphy": Stream.failed,
    "no-implementation": Stream.no_implementation,
    "option-sparsity": Stream.option_sparsity,
    "sparsity": Stream.sparsity,
    "calibration": Stream.calibration,
    "deepstream-uid": Stream.deepstream,
    "profile-begin": Stream.profile_begin,
    "dump-8": Stream.dump_8,
    "dump-8-layer": Stream.dump_8_layer,
    "dump-10-layer": Stream.dump_10_layer,
}
