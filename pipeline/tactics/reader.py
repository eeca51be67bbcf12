"""From files to a report: the one way through the workshop."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pipeline.errors import InputError
from pipeline.records.tactics import Source, TacticReport
from pipeline.tactics.builds import BuildLog, Stream
from pipeline.tactics.judge import judge
from pipeline.tactics.layerinfo import read_layer_info, require_details
from pipeline.tactics.lines import Joiner, detect_width
from pipeline.tactics.sparsity import Widths

_HINT = "give the whole log of a build (trtexec, or another TensorRT logger at INFO or below)"


def read(sources: Sequence[str], *, onnx_nodes: Sequence[str] | None = None, build: int | None = None) -> TacticReport:
    """Read logs, layer info, profiles and times into one report.

    Args:
        sources: Paths, folders, or `-`; what each is, is told by its content.
        onnx_nodes: Names of the model's nodes, to which the parts of fused names are joined.
        build: The build that a joined file belongs to where that is not evident.

    Raises:
        InputError: a file cannot be read, or none of them holds a TensorRT build.
    """
    found: list[Source] = []
    logs: list[tuple[BuildLog, Widths]] = []
    for number, path in enumerate(sources):
        info = _read_json(number, path)
        if info is not None:
            found.append(info[0])
            logs.append((info[1], Widths()))
            continue
        source, builds, widths = _read_log(number, path)
        found.append(source)
        logs += [(log, widths) for log in builds]
    reports = [judge(i, log, widths, onnx_nodes) for i, (log, widths) in enumerate((log, w) for log, w in logs if not log.loads_plan)]
    if not reports:
        raise InputError("no TensorRT build found", where=", ".join(sources), hint=_HINT)
    return TacticReport(sources=found, builds=reports)


def _read_json(number: int, path: str) -> tuple[Source, BuildLog] | None:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror}", where=path) from None
    if data.lstrip()[:1] != b"{":
        return None
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InputError(f"not readable JSON ({error})", where=path, hint="export the file again") from None
    layers = read_layer_info(document, number, path)
    require_details(layers, path)
    source = Source(path=path, sha256=hashlib.sha256(data).hexdigest(), kind="layer-info", producer=None)
    return source, BuildLog(number, dump=layers)


def _read_log(number: int, path: str) -> tuple[Source, list[BuildLog], Widths]:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror}", where=path) from None
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    builds: list[BuildLog] = []
    streams: dict[str | None, Stream] = {}
    joiner = Joiner(detect_width(lines))
    for message in _messages(joiner, lines):
        if message.process not in streams:
            streams[message.process] = Stream(number, message.process, builds)
        streams[message.process].take(message)
    for stream in streams.values():
        stream.finish()
    source = Source(path=path, sha256=hashlib.sha256(data).hexdigest(), kind="log", producer=None)
    return source, [build for build in builds if build.is_build or build.loads_plan], joiner.widths


def _messages(joiner: Joiner, lines: list[str]) -> Iterator:  # type: ignore[type-arg]
    for i, line in enumerate(lines):
        if i == len(lines) - 1 and not line:
            break
        yield from joiner.feed(i + 1, line, ended=i < len(lines) - 1)
    yield from joiner.flush()
