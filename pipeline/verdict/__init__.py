"""Budgets held against evidence: pass, fail or inconclusive, each with its numbers.

The doors below load on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.verdict.budget import BASELINE, Rule, parse
    from pipeline.verdict.facts import Facts, Loss, Statistics
    from pipeline.verdict.overall import judge

_DOORS = {
    "BASELINE": "budget",
    "Rule": "budget",
    "parse": "budget",
    "Facts": "facts",
    "Loss": "facts",
    "Statistics": "facts",
    "judge": "overall",
}

__all__ = ["BASELINE", "Facts", "Loss", "Rule", "Statistics", "judge", "parse"]


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"pipeline.verdict.{_DOORS[name]}"), name)
