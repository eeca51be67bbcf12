"""Training: a plain loop that repeats to the bit and resumes, and predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.training.history import EpochRow, History
    from pipeline.training.loop import fit
    from pipeline.training.outputs import forward, predict
    from pipeline.training.resume import clear

__all__ = ["EpochRow", "History", "clear", "fit", "forward", "predict"]

_HOMES = {"EpochRow": "history", "History": "history", "clear": "resume", "fit": "loop", "forward": "outputs", "predict": "outputs"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
