"""From files to a report: the one way through the workshop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pipeline.errors import InputError
from pipeline.records.tactics import Skipped, Source, TacticReport
from pipeline.tactics.builds import BuildLog, Message
from pipeline.tactics.context import loaded_run, profiles_of
from pipeline.tactics.documents import Document, read_document
from pipeline.tactics.folders import expand, skip
from pipeline.tactics.folding import begins, detect
from pipeline.tactics.inputs import Opened, UnrelatedError
from pipeline.tactics.join import join
from pipeline.tactics.judge import judge, sparsity_of
from pipeline.tactics.lines import Joiner, plain
from pipeline.tactics.parts import holds_parts, joined
from pipeline.tactics.passes import summarise
from pipeline.tactics.plans import read_plan
from pipeline.tactics.raw_lists import Widths
from pipeline.tactics.settle import settle_lists
from pipeline.tactics.sparsity import pair_up, read_lists
from pipeline.tactics.streams import Stream
from pipeline.tactics.tables import Tables

if TYPE_CHECKING:
    from pipeline.tactics.fast import FastWay

SourceKind = Literal["log", "layer-info", "profile", "times", "plan"]
WIDTH_BYTES = 1 << 20
FAST_REST_BYTES = 1 << 16
FAST_SPAN_BYTES = 1 << 17
FAST_FROM_BYTES = 1 << 19
"""Blocks from which importing numpy (80 ms) is repaid."""

NO_BUILD = "no TensorRT build found"
MAX_TOLD = 5
"""Skipped files that an error names."""
_HINT = "give the whole log of a build (trtexec, or another TensorRT logger at INFO or below)"


def read(sources: Sequence[str], *, onnx_nodes: Sequence[str] | None = None, build: int | None = None) -> TacticReport:
    """Read logs, layer info, profiles and times into one report.

    Args:
        sources: Paths, folders, or `-`; what each is, is told by its content.
        onnx_nodes: Names of the model's nodes, to which the parts of fused names are joined.
        build: The build that a joined file belongs to where that is not evident.

    Raises:
        InputError: a named file cannot be read, or none of the files holds a TensorRT build.
    """
    given = expand(sources)
    files = Files()
    for path, named in given.files:
        try:
            skipped = files.take(path, named)
        except UnrelatedError:
            if named:
                raise
        except InputError as error:
            if named:
                raise
            given.skipped.append(skip(path, error))
        else:
            given.skipped += skipped
    return _report(files, onnx_nodes, build, sources, sorted(given.skipped, key=lambda one: one.path))


class Files:
    """What the files hold that were read so far."""

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.logs: list[tuple[BuildLog, Widths]] = []
        self.documents: list[Document] = []

    def take(self, path: str, named: bool) -> list[Skipped]:
        """Read one file; returns it if it was named and holds nothing.

        Raises:
            UnrelatedError: JSON of something else.
            InputError: it cannot be read.
        """
        number = len(self.sources)
        kind: SourceKind = "log"
        producer = None
        documents: list[Document] = []
        logs: list[tuple[BuildLog, Widths]] = []
        with Opened(path) as opened:
            if opened.kind == "plan":
                documents = [read_plan(opened, number)]
                kind = "plan"
            elif opened.kind == "json":
                documents = [read_document(opened.whole(), number, path)]
                kind = documents[0].kind
            elif opened.binary and not named:  # weights are read as text no faster than 4 MB/s
                return []
            else:
                log = _read_log(number, opened)
                if not log.builds:
                    what = f"{'standard input' if path == '-' else 'the file'} is empty" if opened.empty else NO_BUILD
                    return [Skipped(path=path, why=what, hint=_HINT, read=True)] if named else []
                logs = [(build, log.widths) for build in log.builds]
                producer = log.producer
            self.sources.append(Source(path=path, sha256=opened.sha256, kind=kind, producer=producer))
        self.documents += documents
        self.logs += logs
        return []


def _report(files: Files, nodes: Sequence[str] | None, wanted: int | None, given: Sequence[str], skipped: list[Skipped]) -> TacticReport:
    widths = {id(log): width for log, width in files.logs}
    builds = [log for log, _ in files.logs if not log.loads_plan or log.dump]
    runs = [loaded_run(log) for log, _ in files.logs if log.loads_plan]
    lists = {id(log): read_lists(log, widths[id(log)]) for log in builds}
    for log in builds:
        log.listed = {name for listed in lists[id(log)][0] for name in [*listed.names, *listed.doubtful]}
    join(builds, files.documents, wanted)
    if not builds and not runs:
        raise _nothing(given, skipped)
    records = []
    for i, log in enumerate(builds):
        listed, truncated = lists.get(id(log), ([], []))
        log.tables.unname_mixed()
        truncated += [*log.drop_beginnings(), *settle_lists(listed, log.layer_names())]
        summary = summarise(pair_up(listed), profiles_of(log, listed), disabled=sparsity_of(log) == "disabled")
        summary.truncated = truncated
        records.append(judge(i, log, summary, nodes))
    return TacticReport(sources=files.sources, builds=records, runs=runs, skipped=skipped)


def _nothing(given: Sequence[str], skipped: list[Skipped]) -> InputError:
    """No build at all: which files could not be read, or are empty."""
    told = [one for one in skipped if one.why != NO_BUILD]
    lines = [f"\n  {one.path}: {one.why}" for one in told[:MAX_TOLD]]
    lines += [f"\n  and {len(told) - MAX_TOLD} more"] if len(told) > MAX_TOLD else []
    hint = next((one.hint for one in told if one.hint), _HINT)
    return InputError(NO_BUILD + "".join(lines), where=", ".join(given), hint=hint)


def _read_log(number: int, opened: Opened) -> LogFile:
    """Read one log, the bulk of it the fast way."""
    log = LogFile(number)
    rest = b""
    for block in opened.blocks():
        log.begin(block)
        if block.endswith(b"\n"):
            log.take(block)
        else:
            rest = block
    log.finish(rest)
    return log


class LogFile:
    """One log while it is read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.builds: list[BuildLog] = []
        self.streams: dict[str | None, Stream] = {}
        self.joiner: Joiner | None = None
        self.fast: FastWay | None = None
        self.line = 1
        self._span = FAST_SPAN_BYTES
        self._producers: dict[str, int] = {}

    @property
    def producer(self) -> str | None:
        """The program that printed most of the file, by its prefixes."""
        return max(self._producers, key=lambda name: self._producers[name], default=None)

    @property
    def widths(self) -> Widths:
        return self.joiner.widths if self.joiner else Widths()

    def begin(self, block: bytes) -> None:
        """See whether the file is hard-wrapped, or cut at a column, by its beginning."""
        if self.joiner is None:
            lines = list(map(plain, joined(block[:WIDTH_BYTES].decode("utf-8", "replace").split("\n"))))
            self.joiner = Joiner(detect(lines))

    def take(self, block: bytes) -> None:
        """Read whole lines. The last one goes the slow way, where it waits for its continuation in the next block."""
        assert self.joiner is not None
        reshaped = self.joiner.width or self.joiner.cut or self.joiner.parts or holds_parts(block)
        fast = self._fast_way(block) if not reshaped and (self.fast or len(block) >= FAST_FROM_BYTES) else None
        if fast is not None:
            fast.hold(block)
        at = 0
        while at < len(block):
            if fast is not None and self._tables() is not None and not self.joiner.waiting and len(block) - at > FAST_REST_BYTES:
                begin, until = at, self._until(block, at)
                lines, at = fast.read(block, begin, until, self.line)
                self.line += lines
                if lines:
                    whole = block.find(b"\n", at) == until - 1
                    self._span = max(self._span if whole else FAST_SPAN_BYTES, 2 * (at - begin))
                    continue
            end = block.index(b"\n", at)
            if fast is not None and self.joiner.waiting and begins(block[at:end].decode("utf-8", "replace")):
                self._flush()
                continue
            self._slow(self.line, block[at:end], False)
            self.line += 1
            at = end + 1

    def _until(self, block: bytes, at: int) -> int:
        """How far to read at once: where builds are short, about as far as the last one went, since what is behind its end is read anew."""
        end = block.find(b"\n", at + self._span) + 1
        return end if end and len(block) - end > FAST_REST_BYTES else len(block)

    def _fast_way(self, block: bytes) -> FastWay | None:
        if self.fast is None:
            from pipeline.tactics.fast import FastWay

            self.fast = FastWay(self._slow, self._tables)
        return self.fast if self.fast.learn(block) else None

    def finish(self, rest: bytes) -> None:
        """Read what is left: here the last line may lack its line feed."""
        if self.joiner is None:
            return
        lines = rest.split(b"\n")
        ended = lines[-1] == b""
        if ended:
            lines.pop()
        for i, line in enumerate(lines):
            for message in self.joiner.feed(self.line + i, line.decode("utf-8", "replace"), ended=ended or i < len(lines) - 1):
                self._dispatch(message)
        for message in self.joiner.end(self.line + len(lines) - 1):
            self._dispatch(message)
        if self.fast is not None:
            self.widths.join(self.fast.widths)
            self.fast.forget()
        for stream in self.streams.values():
            stream.finish()
        self.builds = [build for build in self.builds if build.is_build or build.loads_plan]

    def _slow(self, number: int, line: bytes, alone: bool) -> None:
        assert self.joiner is not None
        for message in self.joiner.feed(number, line.decode("utf-8", "replace")):
            self._dispatch(message)
        if alone:
            self._flush()

    def _flush(self) -> None:
        assert self.joiner is not None
        for message in self.joiner.flush():
            self._dispatch(message)

    def _stream(self, process: str | None) -> Stream:
        if process not in self.streams:
            self.streams[process] = Stream(self.number, process, self.builds)
        return self.streams[process]

    def _dispatch(self, message: Message) -> None:
        if message.producer:
            self._producers[message.producer] = self._producers.get(message.producer, 0) + 1
        self._stream(message.process).take(message)

    def _tables(self) -> Tables | None:
        return self._stream(None).tuning_tables()
