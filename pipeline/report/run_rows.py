"""The rows that the text and the Markdown of a run share."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Estimate, Measurement
from pipeline.records.quality import Quality
from pipeline.records.verdict import JudgedRule, Rungs
from pipeline.report.estimate_view import estimate_sentence, profile_text
from pipeline.report.ladder_view import is_dense, is_layer
from pipeline.report.table import columns
from pipeline.report.words import count, interval, number

RULES = columns("outcome", "~rule", "found", ">n")
TIMES = columns("arm", "shape", "metric", "of", "ms", ">sure", ">n", ">samples")
RATIOS = columns("@arms", "shape", "metric", "of", "ratio", ">sure", ">n")
ENERGY = columns("arm", "shape", "mJ per inference", ">sure", ">n", "~counted by")
SIZES = columns("arm", "size", ">bytes", "~answers")
QUALITY = columns("arm", "split", "on", "head", "~metric", ">value", ">n")


def outcome(evidence: Evidence) -> str:
    """The word a release decision hangs on: PASS, FAIL, INCONCLUSIVE, or how the run ended."""
    if evidence.gate is not None and evidence.gate.rules:
        return evidence.gate.outcome.value.upper()
    return evidence.run.result.upper() if evidence.run else "NO VERDICT"


def ladder(evidence: Evidence) -> list[Rungs]:
    """The ladder of the gate's record."""
    return evidence.gate.ladder if evidence.gate else []


def summary(evidence: Evidence) -> str:
    """What was run on what, and how many layers there are of which kind."""
    layers = [rungs for rungs in ladder(evidence) if is_layer(rungs)]
    dense = sum(is_dense(rungs) for rungs in layers)
    parts = [count(len(layers), "layer"), f"{dense} dense by decision"] if layers else []
    if evidence.measure:
        parts.append(f"measured with {evidence.measure.conditions.backend} on {evidence.measure.conditions.device}")
    elif evidence.build:
        parts.append(f"built with {evidence.build.backend}")
    return ", ".join(parts)


def rule_row(rule: JudgedRule) -> list[str]:
    """One budget and what was found."""
    value = number(rule.value, rule.unit) if rule.value is not None else ""
    found = f"{value} {interval(rule.low, rule.high)}".strip()
    return [rule.outcome.value, rule.text, found or "-", number(rule.n) if rule.n is not None else "-"]


def _estimate(found: Estimate, unit: str = "") -> tuple[str, str, str]:
    """Value with interval, confidence, observations."""
    value = f"{number(found.value, unit)} {interval(found.low, found.high)}".strip()
    return value, f"{number(found.confidence * 100)} %" if found.low is not None else "-", number(found.n)


def time_rows(measured: Measurement) -> list[list[str]]:
    """Every arm's latency at every shape, by quantile."""
    return [
        [timing.arm, timing.shape, timing.metric, name, *_estimate(found), number(timing.samples)]
        for timing in measured.timings
        for name, found in timing.quantiles.items()
    ]


def ratio_rows(measured: Measurement) -> list[list[str]]:
    """Every ratio of two arms; two arms that run the same kernels are marked A/A."""
    return [
        [f"{r.arm}/{r.over}{' A/A' if r.control else ''}", r.shape, r.metric, r.quantile, *_estimate(r.ratio, "x")] for r in measured.ratios
    ]


def by_metric_and_shape(measured: Measurement) -> list[tuple[str, list[list[str]], list[list[str]]]]:
    """(`metric at shape`, rows of ratios, rows of times), each without the two columns that the title names."""
    found: dict[str, tuple[list[list[str]], list[list[str]]]] = {}
    for arms, shape, metric, *rest in ratio_rows(measured):
        found.setdefault(f"{metric} at {shape}", ([], []))[0].append([arms, *rest])
    for arm, shape, metric, *rest in time_rows(measured):
        found.setdefault(f"{metric} at {shape}", ([], []))[1].append([arm, *rest])
    return [(title, ratios, times) for title, (ratios, times) in found.items()]


def energy_rows(measured: Measurement) -> list[list[str]]:
    """Energy per inference of every arm at every shape, and what counted it."""
    return [[one.arm, one.shape, *_estimate(one.millijoules), one.how] for one in measured.energy]


def size_rows(measured: Measurement) -> list[list[str]]:
    """Every size with the question it answers."""
    return [[size.arm, size.name, str(size.bytes), size.question] for size in measured.sizes]


def sizes_by_arm(measured: Measurement) -> tuple[list[str], list[list[str]]]:
    """The arms, and one row per size: its name, its bytes in each arm, the question."""
    arms = list(dict.fromkeys(size.arm for size in measured.sizes))
    held = {(size.name, size.arm): str(size.bytes) for size in measured.sizes}
    questions = {size.name: size.question for size in measured.sizes}
    return arms, [[name, *(held.get((name, arm), "-") for arm in arms), question] for name, question in questions.items()]


def quality_rows(quality: Mapping[str, list[Quality]]) -> list[list[str]]:
    """Overall metric of every arm and head, with the worst slice of each axis under it."""
    rows = []
    for arm, found in quality.items():
        for item in found:
            for head in item.heads:
                worst_of = min if head.higher_is_better else max
                rows.append([arm, item.split, item.backend, head.head, head.metric, number(head.value), number(head.n)])
                for axis in dict.fromkeys(part.axis for part in head.slices):
                    worst = worst_of((part for part in head.slices if part.axis == axis), key=lambda part: part.value)
                    rows.append(["", "", "", "", f"worst {axis}: {worst.name}", number(worst.value), number(worst.n)])
    return rows


def conditions(measured: Measurement) -> list[str]:
    """What could make the times unfit to judge, and why sampling ended."""
    found = measured.conditions
    lines = [f"simulated: {found.simulated}"] if found.simulated else []
    lines += [f"warning: {warning}" for warning in found.warnings]
    lines += [f"not observed: {', '.join(found.unobserved)}"] if found.unobserved else []
    lines += [f"sampling ended: {measured.stopped}"] if measured.stopped else []
    return lines


def bounds(evidence: Evidence) -> list[str]:
    """At most how much faster: by shapes on NVIDIA GPUs, and by the profiled share of the pruned layers."""
    estimate = evidence.export.estimate if evidence.export else None
    by_shapes = [estimate_sentence(estimate)] if estimate and estimate.gpus else []
    return [*by_shapes, *(profile_text(bound) for bound in (evidence.gate.bounds if evidence.gate else ()))]
