"""Models and data by kind, and what of them enters a stage's key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.sources.arrays import ArraySplit, Subset
    from pipeline.sources.base import Data, ModelSource, Split
    from pipeline.sources.data import data_source
    from pipeline.sources.models import model_source
    from pipeline.sources.reads import digests
    from pipeline.sources.state import load_into, load_state, save_state

__all__ = [
    "ArraySplit",
    "Data",
    "ModelSource",
    "Split",
    "Subset",
    "data_source",
    "digests",
    "load_into",
    "load_state",
    "model_source",
    "save_state",
]

_HOMES = {
    "ArraySplit": "arrays",
    "Data": "base",
    "ModelSource": "base",
    "Split": "base",
    "Subset": "arrays",
    "data_source": "data",
    "digests": "reads",
    "load_into": "state",
    "load_state": "state",
    "model_source": "models",
    "save_state": "state",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
