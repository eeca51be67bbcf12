"""Parses one model with TensorRT's or TensorRT-RTX's own ONNX parser, alone in a process that it may crash.

Usage: parsing_child.py MODULE MODEL strong|weak|any. Prints one line of JSON behind `MARK`. Imports nothing of sparsegate.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

MARK = "sparsegate-preflight "
MOST_LINES = 20


def parse(module: str, model: str, typing: str) -> dict[str, Any]:
    """Parse a model file; `unusable` says why the package cannot do it here."""
    try:
        trt = import_module(module)
    except (ImportError, OSError) as error:
        return {"unusable": f"{module} cannot be imported: {error}"}
    lines: list[str] = []

    class Log(trt.ILogger):  # type: ignore[name-defined, misc]
        """Keeps warnings and errors."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            """Called by the library."""
            if severity <= trt.ILogger.Severity.WARNING and len(lines) < MOST_LINES:
                lines.append(text)

    log = Log()
    try:
        network = trt.Builder(log).create_network(_flags(trt, typing))
    except TypeError as error:
        return {"unusable": f"{module} {trt.__version__} cannot make a builder here (no driver?): {error}"}
    parser = trt.OnnxParser(network, log)
    # From the file, by its absolute path: from bytes the parser does not find external data.
    parsed = parser.parse_from_file(str(Path(model).resolve()))
    errors = [_error(parser.get_error(at)) for at in range(parser.num_errors)]
    return {"parser": f"{module} {trt.__version__}", "parsed": bool(parsed), "layers": network.num_layers, "errors": errors, "log": lines}


def _flags(trt: Any, typing: str) -> int:
    flags = trt.NetworkDefinitionCreationFlag
    wanted = []
    if hasattr(flags, "EXPLICIT_BATCH") and int(trt.__version__.split(".")[0]) < 10:
        wanted.append(flags.EXPLICIT_BATCH)
    if typing == "strong" and hasattr(flags, "STRONGLY_TYPED"):
        wanted.append(flags.STRONGLY_TYPED)
    return sum(1 << int(flag) for flag in wanted)


def _error(error: Any) -> dict[str, Any]:
    def ask(name: str) -> str:
        return str(getattr(error, name)()) if hasattr(error, name) else ""

    code = error.code()
    return {
        "code": getattr(code, "name", str(code)),
        "text": error.desc(),
        "node": ask("node_name"),
        "op": ask("node_operator"),
        "index": error.node(),
    }


if __name__ == "__main__":
    sys.stdout.write("\n" + MARK + json.dumps(parse(*sys.argv[1:4])) + "\n")
