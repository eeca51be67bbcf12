"""sparsegate: 2:4 sparsity for TensorRT, from masks to a release decision.

The names below load on first use; importing this package imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_DOORS = {
    "load_recipe": "pipeline.recipe",
    "run": "pipeline.run",
    "read_log": "pipeline.api",
    "check_onnx": "pipeline.api",
    "bench": "pipeline.api",
    "judge": "pipeline.api",
    "diff": "pipeline.api",
    "explain": "pipeline.api",
    "estimate": "pipeline.api",
}

__all__ = ["__version__", "bench", "check_onnx", "diff", "estimate", "explain", "judge", "load_recipe", "read_log", "run"]


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_DOORS[name]), name)
