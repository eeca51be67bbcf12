"""Baselines: what an earlier release reached. They are made from a run that passes, and only ever get tighter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.commands import names
from pipeline.errors import InputError
from pipeline.records import io
from pipeline.records.baseline import Baseline, BaselineLatency, BaselineQuality
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Estimate, Measurement
from pipeline.records.verdict import RuleResult, Verdict
from pipeline.verdict.comparable import differences
from pipeline.verdict.facts import Statistics

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DIGITS = 6
"""Significant digits that are stored: a person reads the difference of two baselines in a review."""


class Ratcheted(NamedTuple):
    """The baseline to store, and what happened to each figure."""

    baseline: Baseline
    notes: list[str]


def checked_name(name: str) -> str:
    """The name, if it can be a file's.

    Raises:
        InputError: it holds anything but letters, digits, `.`, `_` and `-`, or is too long.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot name a baseline", where="--baseline", hint="use letters, digits, `.`, `_` and `-`, at most 64")
    return name


def read(path: Path) -> Baseline:
    """A stored baseline with figures that can be compared.

    Raises:
        InputError: the file cannot be read, or holds a figure that no run can have; names the figure.
    """
    found = io.read(path, Baseline)
    for name, value, least in _figures(found):
        if value is not None and not (math.isfinite(value) and (value > 0 or value == least)):
            kept = "git keeps earlier states of the file; `gate RUN --save-baseline NAME --replace` makes it anew"
            raise InputError(f"{name} is {value:g}: no run has such a figure", where=str(path), hint=kept)
    return found


def _figures(baseline: Baseline) -> Iterator[tuple[str, float | None, float | None]]:
    """Each figure with where it stands, and 0 where that is possible."""
    estimates = {f"latency[{at}].estimate": one.estimate for at, one in enumerate(baseline.latency)}
    for place, estimate in {**estimates, **{f"energy[{shape}]": one for shape, one in baseline.energy.items()}}.items():
        for field in ("value", "low", "high", "confidence"):
            if field != "low" or place in estimates:  # of few windows the lower bound of an energy may lie below 0
                yield f"{place}.{field}", getattr(estimate, field), None
    for at, head in enumerate(baseline.quality):
        yield f"quality[{at}].value", head.value, 0
        yield f"quality[{at}].n", head.n, None
    for size, count in baseline.sizes.items():
        yield f"sizes[{size}]", count, None


def made(name: str, arm: str, evidence: Evidence, verdict: Verdict, statistics: Statistics) -> Baseline:
    """A baseline from a run.

    Raises:
        InputError: the run does not pass, or nothing of this arm was measured.
    """
    measured = evidence.measure
    if measured is None:
        raise InputError("nothing was measured in this run", where=name, hint="run the measure stage")
    if verdict.outcome is not RuleResult.PASS:
        raise InputError(
            f"this run is {verdict.outcome.value}: only a run that passes becomes a baseline",
            where=name,
            hint=f"sparsegate gate {names(evidence)['run']}",
        )
    run = f"{evidence.run.recipe}/{evidence.run.id}" if evidence.run else "unknown"
    latency = _latency(measured, arm, statistics, run)
    quality = _quality(measured, arm)
    sizes = {size.name: size.bytes for size in measured.sizes if size.arm == arm}
    energy = {one.shape: _rounded(one.millijoules) for one in measured.energy if one.arm == arm}
    if not (latency or quality or sizes or energy):  # such a baseline would hold nothing that a later run could miss
        raise InputError(f"this run has no figure of an arm {arm!r}", where=name, hint=f"choose --arm from {_arms(measured)}")
    onnx = next((one.model.sha256 for one in evidence.export.arms if one.arm == arm), None) if evidence.export else None
    return Baseline(
        name=name,
        arm=arm,
        recipe=evidence.run.recipe if evidence.run else "",
        run=run,
        backend=measured.conditions.backend,
        device=measured.conditions.device,
        settings=measured.conditions.settings,
        model=onnx,
        latency=latency,
        quality=quality,
        sizes=sizes,
        energy=energy,
    )


def _latency(measured: Measurement, arm: str, statistics: Statistics, run: str) -> list[BaselineLatency]:
    """Every quantile of the arm for which its samples suffice."""
    asked = [(timing, quantile) for timing in measured.timings if timing.arm == arm for quantile in timing.quantiles]
    found = [(timing, quantile, statistics.absolute(arm, timing.shape, timing.metric, quantile)) for timing, quantile in asked]
    return [
        BaselineLatency(
            shape=timing.shape,
            inputs=timing.inputs,
            metric=timing.metric,
            quantile=quantile,
            estimate=_rounded(estimate),
            source=run,
        )
        for timing, quantile, estimate in found
        if isinstance(estimate, Estimate)
    ]


def _quality(measured: Measurement, arm: str) -> list[BaselineQuality]:
    return [
        BaselineQuality(
            head=head.head, metric=head.metric, split=one.split, value=_short(head.value), n=head.n, higher_is_better=head.higher_is_better
        )
        for one in measured.quality.get(arm, [])
        for head in one.heads
    ]


def _arms(measured: Measurement) -> str:
    """The arms that have figures."""
    found = {*measured.quality, *(timing.arm for timing in measured.timings), *(size.arm for size in measured.sizes)}
    return ", ".join(sorted(found | {energy.arm for energy in measured.energy})) or "none: the measure stage found no figures"


def ratchet(old: Baseline, new: Baseline, evidence: Evidence) -> Ratcheted:
    """The new baseline with every figure of the old one that it does not beat.

    A latency is beaten when even the new upper bound is below the old value: keeping the smaller of two noisy values each time
    would tighten a budget by luck alone.

    Raises:
        InputError: the two were measured under conditions that cannot be compared, or are of different recipes or arms.
    """
    if (old.recipe, old.arm) != (new.recipe, new.arm):
        raise InputError(
            f"baseline {old.name} is of {old.recipe} arm {old.arm}, this run is of {new.recipe} arm {new.arm}",
            where=old.name,
            hint="choose another name, or --replace",
        )
    different = differences(evidence.measure, old) if evidence.measure else []
    if different:
        raise InputError(
            f"baseline {old.name} cannot be tightened: {'; '.join(different)}",
            where=old.name,
            hint="measure as it was, or --replace to start anew",
        )
    notes = []
    latency = {(e.shape, e.metric, e.quantile): e for e in old.latency}
    for entry in new.latency:
        key = (entry.shape, entry.metric, entry.quantile)
        before = latency.get(key)
        beaten = before is None or (entry.estimate.high is not None and entry.estimate.high < before.estimate.value)
        if beaten:
            latency[key] = entry
            was = "" if before is None else f" (was {before.estimate.value:g})"
            notes.append(f"{entry.quantile} {entry.metric} at {entry.shape}: {entry.estimate.value:g} ms{was}")
    quality = {(e.head, e.metric, e.split, e.n): e for e in old.quality}
    for found in new.quality:
        at = (found.head, found.metric, found.split, found.n)
        kept = quality.get(at)
        if kept is None or (found.value > kept.value if found.higher_is_better else found.value < kept.value):
            quality[at] = found
            notes.append(f"{found.metric} of {found.head}: {found.value:g}")
    sizes = {name: min(size, old.sizes.get(name, size)) for name, size in new.sizes.items()}
    baseline = msgspec.structs.replace(
        new,
        latency=list(latency.values()),
        quality=list(quality.values()),
        sizes={**old.sizes, **sizes},
        energy={**new.energy, **old.energy},
    )
    return Ratcheted(baseline, notes or ["nothing was beaten: the figures stay as they were"])


def _rounded(estimate: Estimate) -> Estimate:
    low, high = (None if bound is None else _short(bound) for bound in (estimate.low, estimate.high))
    return msgspec.structs.replace(estimate, value=_short(estimate.value), low=low, high=high, confidence=_short(estimate.confidence))


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
