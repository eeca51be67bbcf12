"""When times are not fit to be judged: one row per ground, each with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from pipeline.records.measurement import Conditions, Reading
from pipeline.verdict.facts import Facts


class Question(NamedTuple):
    """The latency rule that is about to be judged."""

    arms: tuple[str, ...]
    shape: str
    metric: str


class Refusal(NamedTuple):
    """Why, and what would help."""

    why: str
    needs: str


class Warned(NamedTuple):
    """A warning of the timing tool that spoils some metrics."""

    pattern: re.Pattern[str]
    metrics: frozenset[str] | None
    """None: all."""
    needs: str


WARNINGS: tuple[Warned, ...] = (
    Warned(
        re.compile(r"compute time is unstable", re.I), None, "lock the clocks (nvidia-smi -lgc) or lengthen the warm-up, and measure again"
    ),
    Warned(
        re.compile(r"bound by enqueue time", re.I),
        frozenset({"host_latency", "enqueue", "request"}),
        "judge gpu_compute, or measure with CUDA graphs",
    ),
    Warned(
        re.compile(r"bound by (host-to-device|device-to-host) transfers", re.I),
        frozenset({"host_latency", "request"}),
        "judge gpu_compute, or measure without transfers",
    ),
    Warned(re.compile(r"GPU was slowed down", re.I), None, "cool the device, check its power supply, and measure again"),
    Warned(re.compile(r"other processes used the GPU", re.I), None, "stop the other processes and measure again"),
    Warned(
        re.compile(r"engine plan file across different models of devices", re.I), None, "build the engine on the GPU that it is timed on"
    ),
)

_ANOTHER = re.compile(r"(?P<arm>\S+) does not compute what \S+ does")
"""The warning of `builders.parity.failures`."""
HARMLESS_SLOWDOWN = frozenset({"none", "gpu_idle", "applications_clocks_setting", "sw_power_cap", "sync_boost", "display_clock_setting"})
"""Throttle reasons that are recorded and do not spoil a comparison: arms under one power cap are what a deployment sees."""
CLOCK_TOLERANCE = 0.01
"""Medians of the arms' clocks may differ by this share."""
CLOCK_DISTANCE = 1.95
"""Kolmogorov-Smirnov's coefficient at 0.001."""


def refusal(question: Question, facts: Facts) -> Refusal | None:
    """The first ground on which the times must not be judged; None where there is none."""
    measured = facts.evidence.measure
    if measured is None:
        return Refusal("nothing was measured", "run the measure stage")
    for ground in GROUNDS:
        found = ground(question, measured.conditions, facts)
        if found is not None:
            return found
    return None


def _simulated(_: Question, conditions: Conditions, __: Facts) -> Refusal | None:
    if conditions.simulated is None:
        return None
    return Refusal(f"the times were not taken from a running engine: {conditions.simulated}", "measure on the target")


def _warned(question: Question, conditions: Conditions, _: Facts) -> Refusal | None:
    for text in conditions.warnings:
        for row in WARNINGS:
            if row.pattern.search(text) and (row.metrics is None or question.metric in row.metrics):
                return Refusal(f"the measurement itself warns: {text}", row.needs)
    return None


def computes_something_else(arms: Collection[str], conditions: Conditions) -> Refusal | None:
    """An engine among these arms that is not the model's: whatever it needs less of is no gain."""
    for text in conditions.warnings:
        found = _ANOTHER.match(text)
        if found and found["arm"] in arms:
            return Refusal(
                f"the measurement itself warns: {text}",
                "an engine that computes something else is not faster, it is another: see the parity table of sparsegate report",
            )
    return None


def _another(question: Question, conditions: Conditions, _: Facts) -> Refusal | None:
    return computes_something_else(question.arms, conditions)


def _unsettled(question: Question, _: Conditions, facts: Facts) -> Refusal | None:
    arms = [arm for arm in question.arms if arm in facts.statistics.unsettled(question.shape)]
    if not arms:
        return None
    return Refusal(f"the warm-up of {', '.join(arms)} never became steady", "raise measure.warmup_seconds, or quiet the machine")


def _slowdown(question: Question, conditions: Conditions, _: Facts) -> Refusal | None:
    for reading in _readings(question, conditions):
        reasons = sorted(set(reading.slowdown) - HARMLESS_SLOWDOWN)
        if reasons:
            return Refusal(
                f"the device slowed itself down while {reading.arm} was timed: {', '.join(reasons)}", "cool the device and measure again"
            )
    return None


def _busy(question: Question, conditions: Conditions, _: Facts) -> Refusal | None:
    for reading in _readings(question, conditions):
        if reading.other_processes:
            return Refusal(
                f"{reading.other_processes} other processes used the device while {reading.arm} was timed", "stop them and measure again"
            )
    return None


def _clocks(question: Question, conditions: Conditions, _: Facts) -> Refusal | None:
    clocks = {arm: [mhz for r in _readings(question, conditions) if r.arm == arm for mhz in r.clock_mhz] for arm in question.arms}
    present = [(arm, values) for arm, values in clocks.items() if values]
    for (arm, left), (other, right) in pairwise(present):
        a, b = median(left), median(right)
        apart = abs(a - b) > CLOCK_TOLERANCE * max(a, b)
        if apart and _distance(left, right) > CLOCK_DISTANCE * ((len(left) + len(right)) / (len(left) * len(right))) ** 0.5:
            return Refusal(f"{arm} ran at {a:.0f} MHz and {other} at {b:.0f} MHz", "lock the clocks (nvidia-smi -lgc) and measure again")
    return None


def _distance(left: list[float], right: list[float]) -> float:
    """Largest gap between two empirical distribution functions."""
    points = sorted({*left, *right})
    return max(abs(sum(x <= p for x in left) / len(left) - sum(x <= p for x in right) / len(right)) for p in points)


def _readings(question: Question, conditions: Conditions) -> list[Reading]:
    return [r for r in conditions.readings if r.shape == question.shape and r.arm in question.arms]


GROUNDS: tuple[Callable[[Question, Conditions, Facts], Refusal | None], ...] = (
    _simulated,
    _warned,
    _another,
    _unsettled,
    _slowdown,
    _busy,
    _clocks,
)
