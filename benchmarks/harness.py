"""Side-by-side timing for the benchmarks: two pieces of work in turn, the ratio pair by pair.

Machines drift; a ratio of neighbours in time does not. A benchmark states the least ratio that it asserts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """Time of `ours` over time of `other`: below 1, ours is faster."""

    ours_s: float
    other_s: float
    low: float
    median: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f} .. {self.high:.3f}] (ours {self.ours_s:.4g} s, other {self.other_s:.4g} s, medians)"


def seconds(work: Callable[[], Any]) -> float:
    """Wall seconds of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def side_by_side(ours: Callable[[], Any], other: Callable[[], Any], *, pairs: int = 5, warmup: bool = True) -> Ratio:
    """Time both in turn `pairs` times, the order alternating."""
    if warmup:
        ours()
        other()
    times: list[tuple[float, float]] = []
    for index in range(pairs):
        if index % 2:
            second = seconds(other)
            times.append((seconds(ours), second))
        else:
            times.append((seconds(ours), seconds(other)))
    ratios = [a / b for a, b in times]
    return Ratio(
        statistics.median(a for a, _ in times), statistics.median(b for _, b in times), min(ratios), statistics.median(ratios), max(ratios)
    )


def expect(name: str, holds: bool, figure: object, target: str) -> None:
    """Print one line, and end the benchmark with exit code 1 where its target is missed."""
    print(f"{'ok  ' if holds else 'MISS'} {name}: {figure} (target: {target})", flush=True)
    if not holds:
        sys.exit(1)
