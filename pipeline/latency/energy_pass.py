"""Energy per inference: every arm alone on the device for a while, again and again, between two readings of a cumulative meter.

The blocks of the latency samples are too short for it: a GPU's counter moves a few times a second, and a block lasts milliseconds. So
this is a pass apart with long windows. An engine of this process runs the same work for a while before a window opens, so that what the
meter still owes is this arm's own. Where a window is a process (trtexec), starting and loading would count too: then each observation is
the difference between a long and a short process, in which they cancel, per inference by which they differ.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from pipeline.latency.confidence import student_quantile
from pipeline.latency.plan import Sampler, starts_processes
from pipeline.progress import Progress, silent
from pipeline.records.measurement import Energy, Estimate

PROBE = 10
"""Inferences that show how many fill a window, and of a short process."""


class EnergyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often the meter is read."""

    seconds: float = 20.0
    """Planned time per shape, all arms together; 0: none."""
    windows: int = 6
    """Least number of windows per arm, even where they take longer."""
    window_s: float = 1.0
    lead_s: float = 0.3
    """Same work before a window: longer than the meter's step."""
    process_window_s: float = 4.0
    """Longer, since the power of a machine elsewhere is looked at a few times a second."""
    settle_s: float = 1.5
    """Rest after a process: the power that nvidia-smi shows is a mean over the second before."""


class Metered(NamedTuple):
    """What was found, or why nothing was."""

    energy: list[Energy]
    unobserved: str | None = None


class _Arm(NamedTuple):
    sampler: Sampler
    inferences: int
    """Inferences of a window."""
    lead: int


def energy(
    arms: Mapping[str, Sampler],
    meter: Callable[[], float | None],
    *,
    shape: str,
    how: str,
    plan: EnergyPlan,
    seed: int,
    alpha: float,
    progress: Progress = silent,
    pause: Callable[[float], None] = time.sleep,
) -> Metered:
    """Energy per inference of every arm at one shape.

    Args:
        arms: Sampler by arm name, bound to inputs of the shape.
        meter: Energy since some moment in the past, mJ; None where nothing counts it.
        shape: Id of the shape.
        how: What the meter is, for the record.
        plan: How long.
        seed: Of the order of arms.
        alpha: Error probability of each bound.
        progress: Told after each round.
        pause: Sleeps seconds; replaced in tests.

    Returns:
        One entry per arm, with Student's interval over its windows; none where the meter says nothing, or stands still in a window.
    """
    if plan.seconds <= 0 or not arms:
        return Metered([])
    if meter() is None:
        return Metered([], "energy")
    ready = {name: _sized(sampler, plan) for name, sampler in arms.items()}
    rounds = max(plan.windows, int(plan.seconds / sum(_window_s(arm, plan) for arm in ready.values())))
    found: dict[str, list[float]] = {name: [] for name in arms}
    order = random.Random(seed)
    for done in range(rounds):
        for name in order.sample(list(ready), len(ready)):
            used = _observe(ready[name], meter, plan, pause)
            if used is None:
                return Metered([], f"energy at {shape}: the meter stood still, or was lost, while {name} ran")
            found[name].append(used)
        progress(f"energy {shape}", done + 1, rounds)
    if any(statistics.fmean(values) <= 0 for values in found.values()):
        return Metered([], f"energy at {shape}: windows of {plan.process_window_s:g} s are too short for this meter")
    return Metered([Energy(arm=name, shape=shape, millijoules=_estimate(values, alpha), how=how) for name, values in found.items()])


def _sized(sampler: Sampler, plan: EnergyPlan) -> _Arm:
    """How many inferences fill a window and its lead: by the slowest metric, which holds the others."""
    ms = max(float(np.mean(values)) for values in sampler.block(PROBE).values())
    seconds = plan.process_window_s if starts_processes(sampler) else plan.window_s
    return _Arm(sampler, max(PROBE + 1, math.ceil(seconds * 1e3 / ms)), max(1, math.ceil(plan.lead_s * 1e3 / ms)))


def _window_s(arm: _Arm, plan: EnergyPlan) -> float:
    return plan.process_window_s + 2 * plan.settle_s if starts_processes(arm.sampler) else plan.window_s + plan.lead_s


def _observe(arm: _Arm, meter: Callable[[], float | None], plan: EnergyPlan, pause: Callable[[float], None]) -> float | None:
    """One observation, mJ per inference; None where the meter says nothing or stood still."""
    if not starts_processes(arm.sampler):
        arm.sampler.block(arm.lead)
        used = _used(lambda: arm.sampler.block(arm.inferences), meter)
        return None if used is None else used / arm.inferences

    def process(count: int) -> None:
        arm.sampler.block(count)
        pause(plan.settle_s)

    short, long = _used(lambda: process(PROBE), meter), _used(lambda: process(arm.inferences), meter)
    return None if short is None or long is None else (long - short) / (arm.inferences - PROBE)


def _used(work: Callable[[], object], meter: Callable[[], float | None]) -> float | None:
    before = meter()
    work()
    after = meter()
    return None if before is None or after is None or after <= before else after - before


def _estimate(values: list[float], alpha: float) -> Estimate:
    """Mean with Student's interval: the number of windows was fixed in advance, and nobody looked in between."""
    mean = statistics.fmean(values)
    half = student_quantile(alpha, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(value=mean, low=mean - half, high=mean + half, confidence=1 - 2 * alpha, n=len(values))
