"""Rungs 8 and 9: is the engine faster at each shape that was measured; is the served request?"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Measurement, Ratio
from pipeline.records.rung import Rung, Step
from pipeline.records.verdict import Rungs
from pipeline.verdict.claims import ARM, OVER, Claim, placed
from pipeline.verdict.missing import why_missing

QUANTILE = "p50"
METRICS = ("gpu_compute", "host_latency")
"""The engine's own time first; what the host saw where the backend has no clock of its own."""


def engine_rungs(evidence: Evidence) -> list[Rungs]:
    """Rung 8, once per shape that was measured; one `engine` that is unknown where nothing was."""
    measured = evidence.measure
    if measured is None:
        return [placed("engine", {Step.FASTER_ENGINE: Claim(Rung.UNKNOWN, why_missing(evidence, "measure"))})]
    shapes = dict.fromkeys((timing.profile, timing.shape) for timing in measured.timings)
    if not shapes:
        return [placed("engine", {Step.FASTER_ENGINE: Claim(Rung.UNKNOWN, "the measurement holds no timings")})]
    return [placed(_name(profile, shape), {Step.FASTER_ENGINE: _judge(measured, shape)}) for profile, shape in shapes]


def service_rungs() -> list[Rungs]:
    """Rung 9: no load run is made, so nothing is known of served requests."""
    return [placed("service", {Step.FASTER_REQUEST: Claim(Rung.UNKNOWN, "no load run: requests were not measured")})]


def _name(profile: int, shape: str) -> str:
    return f"engine {shape}" if profile == 0 else f"engine profile={profile} {shape}"


def main_ratio(ratios: Iterable[Ratio], shape: str, arm: str = ARM, over: str = OVER) -> Ratio | None:
    """The ratio of two arms' median at a shape, in the engine's own time where there is one."""
    found = {r.metric: r for r in ratios if (r.arm, r.over, r.shape, r.quantile) == (arm, over, shape, QUANTILE)}
    return next((found[metric] for metric in METRICS if metric in found), next(iter(found.values()), None))


def _judge(measured: Measurement, shape: str) -> Claim:
    ratio = main_ratio(measured.ratios, shape)
    if ratio is None:
        return Claim(Rung.UNKNOWN, f"{ARM} and {OVER} were not compared at {shape}")
    text = ratio_text(ratio)
    if ratio.ratio.low is None or ratio.ratio.high is None:
        return Claim(Rung.UNKNOWN, f"{text}: no interval")
    if measured.conditions.simulated:
        return Claim(Rung.UNKNOWN, f"{text}; but the times are not from an engine that ran here: {measured.conditions.simulated}")
    broken = next((r for r in measured.ratios if r.control and r.shape == shape and r.quantile == QUANTILE and not holds_one(r)), None)
    if broken is not None:
        return Claim(Rung.UNKNOWN, f"{text}; but the control {ratio_text(broken)} leaves out 1")
    if ratio.ratio.high < 1:
        return Claim(Rung.YES, text)
    return Claim(Rung.NO if ratio.ratio.low >= 1 else Rung.UNKNOWN, text)


def ratio_text(ratio: Ratio) -> str:
    """`sparse/dense 0.91x [0.90, 0.93] (p50 host_latency, n=20)`."""
    found = ratio.ratio
    interval = f" [{found.low:.3f}, {found.high:.3f}]" if found.low is not None and found.high is not None else ""
    return f"{ratio.arm}/{ratio.over} {found.value:.3f}x{interval} ({ratio.quantile} {ratio.metric}, n={found.n})"


def holds_one(ratio: Ratio) -> bool:
    """Whether an A/A ratio's interval includes 1; True without an interval."""
    low, high = ratio.ratio.low, ratio.ratio.high
    return low is None or high is None or low <= 1 <= high
