"""What stands before a message, by the program that printed it: one row each, read in one pass.

A prefix is a run of pieces: a process tag, a time, a severity, `[TRT]`. Reading it piece by piece is what makes torn
and repeated prefixes (`[t] [t] [W] [TRT] msg`, or `[W] [TRT] msg` without its time) as readable as whole ones.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Severity = Literal["V", "I", "W", "E"]

DATE = r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\]"


class Piece(msgspec.Struct, frozen=True):
    """One piece of a prefix."""

    name: str
    pattern: str
    """May hold the groups `sev` (a severity word or letter), `process` and `tag`."""
    producer: str | None = None
    """Whose it is, where it tells."""


PIECES: tuple[Piece, ...] = (
    Piece("quote", r">(?!>) ?|\*\*(?!\*)|`+"),
    Piece("colour-remains", r"\[(?:\d+(?:;\d+)*)?m"),
    Piece("compose", r"(?P<process>[\w.-]+-\d+) +\| "),
    Piece("ros", r"(?:\d+: )?\[(?P<process>[A-Za-z][\w.+]*(?:-[\w.+]+)*-\d+)\] ", "ros"),
    Piece(
        "onnxruntime",
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \[[VIWEF]:onnxruntime:[^\]]*\] \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +(?P<sev>[A-Z_]+)\] ",
        "onnxruntime",
    ),
    Piece("trtexec", DATE + r" \[(?P<sev>[VIWEF])\] \[TRT\] ?", "trtexec"),
    Piece("python", DATE + r" \[TRT\] \[(?P<sev>[VIWEF])\] ?", "tensorrt-python"),
    Piece("trtexec-own", DATE + r" \[(?P<sev>[VIWEF])\] ?", "trtexec"),
    Piece("python-old", r"\[TensorRT\] (?P<sev>VERBOSE|INFO|WARNING|ERROR|INTERNAL_ERROR): ?", "tensorrt-python"),
    Piece("triton", r"(?P<sev>[VIWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ", "triton"),
    Piece("triton-iso", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (?P<sev>[VIWEF]) \d+ [\w./-]+:\d+\] ", "triton"),
    Piece("ros-node", r"\[(?P<sev>DEBUG|INFO|WARN|ERROR|FATAL)\] \[\d{9,10}\.\d{1,9}\] \[[\w./-]+\]: ?", "ros"),
    Piece("torch-tensorrt", r"(?P<sev>DEBUG|GRAPH|INFO|WARNING|ERROR): \[Torch-TensorRT[^\]]*\] - ", "torch-tensorrt"),
    Piece("torch-tensorrt-python", r"(?P<sev>DEBUG|INFO|WARNING|ERROR):torch_tensorrt ?\[[^\]]*\]: ?", "torch-tensorrt"),
    Piece("deepstream", r"(?P<sev>DEBUG|INFO|WARNING|ERROR): (?:[\w./-]+:\d+ )?\[TRT\]: ?", "deepstream"),
    Piece("python-logging", r"(?P<sev>DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]+: ?", "python-logging"),
    Piece(
        "python-logging-dated",
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})? (?:- )?(?:[\w. \[\]-]{1,80}? - )?"
        r"\[?(?P<sev>DEBUG|INFO|WARNING|ERROR|CRITICAL)\]?(?: - | |: ?)",
        "python-logging",
    ),
    Piece("onnx2trt", r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +(?P<sev>[A-Z_]+)\] (?:\[TRT\] ?)?", "onnx2trt"),
    Piece("time", DATE + " ?"),
    Piece("container", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) std(?:out|err) F "),
    Piece("iso-time", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d) "),
    Piece("unix-time", r"\d{10}\.\d{1,9} (?=\[)"),
    Piece("clock", r"\(\d\d:\d\d:\d\d\) "),
    Piece("polygraphy-verbose", r"\[(?P<sev>[XSU!])\] ", "polygraphy"),
    Piece("severity", r"\[(?P<sev>[VIWEF])\] ?(?:\[TRT\] ?)?"),
    Piece("trt-severity", r"\[TRT\] \[(?P<sev>[VIWEF])\] ?"),
    Piece("trt", r"\[TRT\] *(?:: )?"),
)
"""Tried in this order at every step: the longer form of a producer before the shorter one."""

_SEVERITY: dict[str, Severity] = {
    **dict.fromkeys(("V", "X", "S", "U", "VERBOSE", "DEBUG", "GRAPH"), "V"),
    **dict.fromkeys(("I", "INFO"), "I"),
    **dict.fromkeys(("W", "WARN", "WARNING"), "W"),
    **dict.fromkeys(("E", "F", "!", "ERROR", "INTERNAL_ERROR", "CRITICAL", "FATAL"), "E"),
}


def _numbered(piece: Piece) -> str:
    return re.sub(r"\?P<(\w+)>", lambda m: f"?P<{m.group(1)}_{piece.name.replace('-', '_')}>", piece.pattern)


_PIECE = re.compile("[ \\t]*(?:" + "|".join(f"(?P<{p.name.replace('-', '_')}>{_numbered(p)})" for p in PIECES) + ")")
_PRODUCER = {p.name.replace("-", "_"): p.producer for p in PIECES}
_SEV_GROUP = {p.name.replace("-", "_"): f"sev_{p.name.replace('-', '_')}" for p in PIECES if "?P<sev>" in p.pattern}
_PROCESS_GROUP = {p.name.replace("-", "_"): f"process_{p.name.replace('-', '_')}" for p in PIECES if "?P<process>" in p.pattern}


_PROVES_NOTHING = ("trtexec_own", "python_logging", "python_logging_dated")
_AMBIGUOUS = ("severity",)


class Head(msgspec.Struct, frozen=True):
    """A line's prefix."""

    end: int
    """Where the message begins; 0 where the line has no prefix."""
    severity: Severity | None = None
    process: str | None = None
    producer: str | None = None
    level: Literal["info", "verbose"] | None = None
    """What it proves of TensorRT's log level: trtexec's own lines prove nothing, and a bare `[V]` is polygraphy's INFO."""


NO_HEAD = Head(0)


def head(line: str) -> Head:
    """Read the prefix of one line."""
    pos = 0
    severity: Severity | None = None
    process = producer = None
    level: Literal["info", "verbose"] | None = None
    while match := _PIECE.match(line, pos):
        name = match.lastgroup or ""
        pos = match.end()
        if group := _SEV_GROUP.get(name):
            severity = _SEVERITY.get(match[group], severity)
            if name not in _PROVES_NOTHING and severity in ("V", "I"):
                level = "verbose" if severity == "V" and name not in _AMBIGUOUS else "info"
        if group := _PROCESS_GROUP.get(name):
            process = match[group]
        producer = producer or _PRODUCER[name]
    return Head(pos, severity, process, producer, level) if pos else NO_HEAD


EMBEDDED = re.compile(
    r"(?<=.)(?:" + DATE + r" \[(?:[VIWEF]|TRT)\]|\[TensorRT\] (?:VERBOSE|INFO|WARNING|ERROR): |&&&& (?:RUNNING|PASSED|FAILED) )"
)
"""A prefix in the middle of a line: two messages that were torn into one."""
