"""Reading TensorRT: build logs, layer info, profiles and times into one report of eligible, timed and selected layers.

`read` is the door; `classify` tells a sparse kernel from a dense one by its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.errors import InputError
    from pipeline.tactics.kernels import classify
    from pipeline.tactics.reader import read

__all__ = ["InputError", "classify", "read"]

_DOORS = {"read": "pipeline.tactics.reader", "classify": "pipeline.tactics.kernels", "InputError": "pipeline.errors"}


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_DOORS[name]), name)
