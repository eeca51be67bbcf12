"""Warm-up until steady: blocks are run and thrown away until an arm's times stop moving."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.latency.plan import Plan, Sampler

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW = 6
"""Block medians per half of the comparison."""
TOLERANCE = 0.02
"""Halves whose medians differ by less than this share are steady whatever the noise."""
NOISE = 3.0
"""... as are halves that differ by less than this many standard errors."""


class Warm(NamedTuple):
    """What the warm-up found."""

    ms: dict[str, float]
    """Median time of one inference per arm, from its last blocks: what a block's length is made from."""
    mean_ms: dict[str, float]
    """Mean time, stalls included: what the measurement will take."""
    settled: dict[str, bool]


def warm_up(arms: Mapping[str, Sampler], plan: Plan, clock: Callable[[], float]) -> Warm:
    """Run every arm in turn until all are steady, or the plan's longest warm-up is over (not before there are blocks to compare)."""
    medians: dict[str, list[float]] = {name: [] for name in arms}
    means: dict[str, list[float]] = {name: [] for name in arms}
    start = clock()
    while True:
        for name, sampler in arms.items():
            block = _block(sampler, medians[name], plan)
            medians[name].append(float(np.median(block)))
            means[name].append(float(block.mean()))
        settled = {name: steady(values) for name, values in medians.items()}
        enough = all(settled.values()) and clock() - start >= plan.least_warmup_seconds
        comparable = len(next(iter(medians.values()))) >= 2 * WINDOW or plan.warmup_seconds == 0
        if enough or (comparable and clock() - start >= plan.warmup_seconds):
            last = {name: float(np.median(values[-WINDOW:])) for name, values in medians.items()}
            return Warm(last, {name: float(np.mean(values[-2 * WINDOW :])) for name, values in means.items()}, settled)


def steady(medians: list[float]) -> bool:
    """Whether the newer half of the last blocks is no faster or slower than the older half.

    Args:
        medians: Block medians in ms, oldest first.
    """
    if len(medians) < 2 * WINDOW:
        return False
    old, new = np.array(medians[-2 * WINDOW : -WINDOW]), np.array(medians[-WINDOW:])
    centre_old, centre_new = float(np.median(old)), float(np.median(new))
    gap = abs(centre_new - centre_old)
    if gap <= TOLERANCE * centre_new:
        return True
    # noise from successive differences, which a trend hardly enters; 1.48 makes a median deviation a standard deviation,
    # 1.25 that of a mean that of a median (both for a normal law)
    spread = 1.48 * float(np.median(np.abs(np.diff(np.concatenate([old, new]))))) / np.sqrt(2)
    return bool(gap <= NOISE * 1.25 * spread * np.sqrt(2 / WINDOW))


def _block(sampler: Sampler, before: list[float], plan: Plan) -> NDArray[np.float64]:
    """A block's times [n]; of several metrics the slowest stands for the time of one inference."""
    count = 2 if not before else int(np.clip(plan.block_ms / 2 / before[-1], 1, 1000))
    return max(map(np.asarray, sampler.block(count).values()), key=lambda values: float(np.median(values)))
