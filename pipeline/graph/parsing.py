"""Does TensorRT's own ONNX parser read the model? Asked in a child process, since a parser may end it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipeline.errors import InputError, MissingPackageError
from pipeline.graph import parsing_child
from pipeline.graph.model import open_model
from pipeline.graph.scopes import node_name
from pipeline.records.check import ParseError, ParseReport

PARSERS = ("tensorrt", "tensorrt_rtx")
"""Asked in this order; the first that works here answers."""
TIMEOUT_S = 600.0


def preflight(path: Path, typing: str | None = None, *, parsers: Sequence[str] = PARSERS, timeout_s: float = TIMEOUT_S) -> ParseReport:
    """Let a real parser read a model.

    Args:
        path: The model; its external data is found from its folder.
        typing: `strong` asks for a strongly typed network where the parser knows both.
        parsers: Packages to try.
        timeout_s: Seconds after which a parser is given up.

    Raises:
        InputError: the file is empty or no ONNX model (a parser takes an empty file for a good one).
        MissingPackageError: none of the packages is installed.
    """
    model = open_model(path)
    installed = [name for name in parsers if find_spec(name) is not None]
    if not installed:
        raise MissingPackageError("tensorrt-rtx", extra="rtx", purpose="--parse")
    unusable = []
    for name in installed:
        answer = _ask(name, path, typing, timeout_s)
        if "unusable" not in answer:
            return _report(answer, [node_name(node) for node in model.proto.graph.node])
        unusable.append(answer["unusable"])
    raise InputError("no ONNX parser works on this machine: " + "; ".join(unusable), where="--parse", hint="pip install 'sparsegate[rtx]'")


def _ask(name: str, path: Path, typing: str | None, timeout_s: float) -> dict[str, Any]:
    # By file and with -P: neither the working folder nor this package's modules may hide others.
    command = [sys.executable, "-P", str(parsing_child.__file__), name, str(path.resolve()), typing or "any"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return _crashed(name, f"the parser did not end within {timeout_s:.0f} s")
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(parsing_child.MARK):
            found: dict[str, Any] = json.loads(line[len(parsing_child.MARK) :])
            return found
    if done.returncode < 0:
        return _crashed(name, f"the parser ended its process with {signal.Signals(-done.returncode).name}")
    return _crashed(name, f"the parser's process ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")


def _crashed(name: str, text: str) -> dict[str, Any]:
    return {
        "parser": name,
        "parsed": False,
        "layers": 0,
        "errors": [{"code": "CRASH", "text": text, "node": "", "op": "", "index": -1}],
        "log": [],
    }


def _report(answer: dict[str, Any], names: list[str]) -> ParseReport:
    errors = []
    for error in answer["errors"]:
        index = error["index"]
        node = error["node"] or (names[index] if 0 <= index < len(names) else "")
        text = error["text"] if error["text"] not in ("", "false") else "the parser does not support this operator"
        errors.append(ParseError(code=error["code"], text=text, node=node or None, op=error["op"] or None))
    parsed = answer["parsed"] and not errors
    if parsed and not answer["layers"] and names:
        parsed = False
        errors.append(ParseError(code="EMPTY", text="the parser says yes, but made a network without layers"))
    return ParseReport(parser=answer["parser"].replace("_", "-"), parsed=parsed, layers=answer["layers"], errors=errors, log=answer["log"])
