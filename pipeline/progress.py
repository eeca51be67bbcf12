"""How a workshop says how far it is, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives progress of one named task; called as often as the worker likes, must return fast."""

    def __call__(self, task: str, done: float, total: float | None = None, text: str = "") -> None:
        """Report that `done` of `total` units of `task` are finished; `text` is the latest figure worth showing."""
        ...


def silent(task: str, done: float, total: float | None = None, text: str = "") -> None:
    """Listen to nothing: the default."""
