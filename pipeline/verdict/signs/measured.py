"""Signs in what was measured: times, their conditions, and quality by slice."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Measurement
from pipeline.records.quality import HeadQuality, Quality
from pipeline.records.rung import Rung
from pipeline.verdict.claims import ARM, OVER
from pipeline.verdict.engine_rungs import QUANTILE, holds_one, main_ratio, ratio_text
from pipeline.verdict.time_rungs import TimeRungs, judge_group

SMALL_LOSS = 0.01
"""An overall loss up to this reads as "the average holds"."""
ALPHA = 0.05
"""Chance, over all slices of a head together, that noise alone reads as a degraded slice."""


def simulated(evidence: Evidence) -> list[str]:
    """Times that no engine made here."""
    measured = evidence.measure
    return [f"measure: {measured.conditions.simulated}"] if measured and measured.conditions.simulated else []


def control_differs(evidence: Evidence) -> list[str]:
    """A/A pairs whose interval leaves out 1."""
    ratios = evidence.measure.ratios if evidence.measure else ()
    return [f"measure: {ratio_text(r)} at {r.shape}" for r in ratios if r.control and r.quantile == QUANTILE and not holds_one(r)]


def not_the_tuned_shape(evidence: Evidence) -> list[str]:
    """Shapes that were timed and are no opt shape of the profile that ran; only where a builder tunes for shapes."""
    if evidence.build is None or evidence.measure is None or evidence.build.sparse_kernels is False:
        return []
    found = []
    for timing in evidence.measure.timings:
        profile = evidence.build.profiles[timing.profile] if timing.profile < len(evidence.build.profiles) else {}
        for name, shape in timing.inputs.items():
            opt = profile.get(name, {}).get("opt")
            if opt and opt != shape:
                found.append(f"measure: {name} ran at {shape}, profile {timing.profile} was tuned at {opt}")
    return list(dict.fromkeys(found))


def layer_gain_lost(evidence: Evidence) -> list[str]:
    """Faster layers in an engine that is not, or a faster engine in a request that is not, at one shape."""
    measured = evidence.measure
    if measured is None:
        return []
    groups = [group for group in TimeRungs(evidence).groups if judge_group(group).rung is Rung.YES]
    found = []
    for shape in dict.fromkeys(timing.shape for timing in measured.timings):
        engine = main_ratio(measured.ratios, shape)
        faster = [group for group in groups if group.shape == shape]
        if faster and engine is not None and not _below_1(engine.ratio.high):
            names = ", ".join(group.arm_layers[0] for group in faster[:3])
            found.append(f"measure: {len(faster)} groups of layers are faster at {shape} ({names}), the engine: {ratio_text(engine)}")
        found += _lost_outside(measured, shape)
    return found


def _lost_outside(measured: Measurement, shape: str) -> list[str]:
    """The engine's own time is lower, what the host or the client sees is not."""
    by_metric = {r.metric: r for r in measured.ratios if (r.arm, r.over, r.shape, r.quantile) == (ARM, OVER, shape, QUANTILE)}
    own = by_metric.get("gpu_compute")
    if own is None or not _below_1(own.ratio.high):
        return []
    seen = [by_metric[metric] for metric in ("host_latency", "request") if metric in by_metric]
    return [f"measure: at {shape} {ratio_text(own)}, but {ratio_text(r)}" for r in seen if not _below_1(r.ratio.high)]


def _below_1(value: float | None) -> bool:
    return value is not None and value < 1


def within_build_spread(evidence: Evidence) -> list[str]:
    """A gain over the dense arm no larger than the spread of the sparse arm's own rebuilds."""
    measured = evidence.measure
    if measured is None:
        return []
    found = []
    for shape in dict.fromkeys(timing.shape for timing in measured.timings):
        engine = main_ratio(measured.ratios, shape)
        if engine is None:
            continue
        medians = [
            timing.quantiles[QUANTILE].value
            for timing in measured.timings
            if (timing.arm.partition("#")[0], timing.shape, timing.metric) == (ARM, shape, engine.metric) and QUANTILE in timing.quantiles
        ]
        spread = max(medians) / min(medians) - 1 if len(medians) > 1 else 0.0
        gain = 1 - engine.ratio.value
        if 0 < gain <= spread:
            found.append(f"measure: at {shape} a gain of {gain:.1%}, {len(medians)} builds of the sparse arm spread over {spread:.1%}")
    return found


def slice_degrades(evidence: Evidence) -> list[str]:
    """Slices that lost more than sampling noise explains, under an overall figure that holds.

    Each arm's slice is a mean of scores in 0..1; the noise of their difference is bounded by the unpaired binomial one, and the
    threshold is Bonferroni's over the head's slices.
    """
    quality = evidence.measure.quality if evidence.measure else {}
    dense = _heads(quality.get(OVER, []))
    found = []
    for key, head in _heads(quality.get(ARM, [])).items():
        if key in dense and dense[key].value - head.value <= SMALL_LOSS:
            found += _worse_slices(dense[key], head)
    return found


def _heads(found: list[Quality]) -> dict[tuple[str, str], HeadQuality]:
    return {(item.split, head.head): head for item in found for head in item.heads}


def _worse_slices(dense: HeadQuality, sparse: HeadQuality) -> list[str]:
    before = {(part.axis, part.name): part for part in dense.slices}
    bar = NormalDist().inv_cdf(1 - ALPHA / max(1, len(sparse.slices)))
    found = []
    for part in sparse.slices:
        old = before.get((part.axis, part.name))
        if old is None or not part.n or not 0 <= part.value <= old.value <= 1:
            continue
        middle = (old.value + part.value) / 2
        if old.value - part.value > bar * sqrt(2 * middle * (1 - middle) / part.n):
            found.append(
                f"measure: {sparse.head} {part.axis}={part.name}: {old.value:.4g} to {part.value:.4g} (n={part.n}), "
                f"overall {dense.value:.4g} to {sparse.value:.4g}"
            )
    return found
