"""Run a recipe at every point of its `sweep` and join the outcomes: selected layers and gain, point by point."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import SparsegateError
from pipeline.records.evidence import Evidence, read_evidence
from pipeline.records.measurement import Estimate
from pipeline.records.rung import Rung
from pipeline.records.sweep import Sweep, SweepPoint

RunPoint = Callable[[Sequence[str]], Path]
"""(overrides) -> the run's folder."""


def points(sweep: Mapping[str, Sequence[Any]]) -> list[dict[str, str]]:
    """Every combination, the last key changing fastest; values as `--set` reads them."""
    return [dict(zip(sweep, map(json.dumps, values), strict=True)) for values in itertools.product(*sweep.values())]


def run_sweep(name: str, sweep: Mapping[str, Sequence[Any]], workspace: Path, run: RunPoint) -> Sweep:
    """Run every point; a point that fails is kept with its reason, and the others go on."""
    return Sweep(recipe=name, points=[_point(settings, workspace, run) for settings in points(sweep)])


def _point(settings: dict[str, str], workspace: Path, run: RunPoint) -> SweepPoint:
    try:
        folder = run(["sweep={}", *(f"{key}={value}" for key, value in settings.items())])
    except SparsegateError as error:
        return SweepPoint(settings=settings, error=error.what)
    return outcome(settings, read_evidence(folder), folder.resolve().relative_to(workspace.resolve()).as_posix())


def outcome(settings: dict[str, str], evidence: Evidence, run: str) -> SweepPoint:
    """What one run says about its point."""
    builds = evidence.tactics.builds if evidence.tactics else []
    layers = next((build.layers for build in builds if build.arm == "sparse"), [])
    measured = evidence.measure
    return SweepPoint(
        settings=settings,
        run=run,
        layers=len(layers),
        eligible=sum(layer.eligible is Rung.YES for layer in layers),
        selected=sum(layer.selected is Rung.YES for layer in layers),
        disputed=sum(layer.selected is Rung.DISPUTED for layer in layers),
        over_dense=_ratio(evidence, "dense"),
        over_twin=_ratio(evidence, "twin"),
        simulated=measured.conditions.simulated if measured else None,
        outcome=str(evidence.gate.outcome) if evidence.gate and evidence.gate.rules else None,
    )


def _ratio(evidence: Evidence, over: str) -> Estimate | None:
    ratios = evidence.measure.ratios if evidence.measure else []
    wanted = [ratio for ratio in ratios if (ratio.arm, ratio.over, ratio.quantile) == ("sparse", over, "p50")]
    main = next((ratio for ratio in wanted if ratio.metric == "gpu_compute"), wanted[0] if wanted else None)
    return main.ratio if main else None
