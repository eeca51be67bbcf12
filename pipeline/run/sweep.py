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
from pipeline.records.rung import Rung, tally
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
    eligible, eligible_unknown = tally(layer.eligible for layer in layers)
    selected, selected_unknown = tally(layer.selected for layer in layers)
    return SweepPoint(
        settings=settings,
        run=run,
        layers=len(layers),
        eligible=eligible,
        eligible_unknown=eligible_unknown,
        selected=selected,
        selected_unknown=selected_unknown,
        disputed=sum(layer.selected is Rung.DISPUTED for layer in layers),
        over_dense=_ratio(evidence, "dense"),
        over_twin=_ratio(evidence, "twin"),
        doubt=_doubt(evidence),
        simulated=measured.conditions.simulated if measured else None,
        outcome=str(evidence.gate.outcome) if evidence.gate and evidence.gate.rules else None,
    )


def _doubt(evidence: Evidence) -> str | None:
    controls = [r for r in (evidence.measure.ratios if evidence.measure else ()) if r.control and r.quantile == "p50"]
    broken = next((r for r in controls if (r.ratio.low or 0) > 1 or (r.ratio.high is not None and r.ratio.high < 1)), None)
    return f"the control {broken.arm}/{broken.over} leaves out 1 ({broken.metric}, {broken.shape})" if broken else None


def _ratio(evidence: Evidence, over: str) -> Estimate | None:
    ratios = evidence.measure.ratios if evidence.measure else []
    wanted = [ratio for ratio in ratios if (ratio.arm, ratio.over, ratio.quantile) == ("sparse", over, "p50")]
    main = next((ratio for ratio in wanted if ratio.metric == "gpu_compute"), wanted[0] if wanted else None)
    return main.ratio if main else None
