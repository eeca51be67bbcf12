"""What changed between two runs: where they ran, what they measured, which rungs hold, and the layers of one arm."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from msgspec.structs import replace

from pipeline import commands
from pipeline.records.difference import Change, ChangeKind, DiffReport, Figure, Point, RungChange
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Estimate, LayerTime, Measurement
from pipeline.records.rung import Step
from pipeline.records.tactics import Build, TacticLayer
from pipeline.records.verdict import Rungs
from pipeline.verdict import ladder
from pipeline.verdict.diff import diff_builds
from pipeline.verdict.environment import differing, run_facts
from pipeline.verdict.joining import build_of
from pipeline.verdict.layer_times import ratio_interval


def diff_runs(a: Evidence, b: Evidence, arm: str) -> DiffReport:
    """Environment, figures, rungs and the layers of one arm."""
    names = (_name(a, "A"), _name(b, "B"))
    layers = diff_builds(
        run_build(a, arm), run_build(b, arm), names=names, look=f"sparsegate report {commands.names(b)['run']} --format md"
    )
    facts = differing(run_facts(a.run) if a.run else {}, run_facts(b.run) if b.run else {})
    known = {fact.name for fact in facts}
    changes = [change for found in layers.changes if (change := _beyond_noise(found, a, b, arm)).kinds]
    return replace(
        layers,
        changes=changes,
        same=layers.same + len(layers.changes) - len(changes),
        environment=[*facts, *(fact for fact in layers.environment if fact.name not in known)],
        figures=_figures(a.measure, b.measure),
        rungs=_rungs(a, b),
        notes=[f"layers are those of the arm {arm}", *layers.notes],
    )


def _name(evidence: Evidence, default: str) -> str:
    return f"{evidence.run.recipe}/{evidence.run.id}" if evidence.run else default


def run_build(evidence: Evidence, arm: str) -> Build:
    """The arm's build as its log tells, with the run's own layer profile at the first shape; the profile alone where no log tells."""
    build = (build_of(evidence.tactics, arm) if evidence.tactics else None) or Build(id=0, arm=arm)
    measured = _profiled(evidence, arm)
    times = {time.layer: (median(time.passes_ms), time.onnx_nodes) for time in measured if time.shape == measured[0].shape}
    layers = [replace(layer, profile_ms=times[layer.name][0]) if layer.name in times else layer for layer in build.layers]
    known = {layer.name for layer in layers}
    layers += [TacticLayer(id=name, name=name, onnx_nodes=nodes, profile_ms=ms) for name, (ms, nodes) in times.items() if name not in known]
    return replace(build, layers=layers)


def _beyond_noise(change: Change, a: Evidence, b: Evidence, arm: str) -> Change:
    """A change of time is one only where the profiling passes of both runs tell it from noise; too few passes cannot."""
    if ChangeKind.TIME not in change.kinds:
        return change
    before, after = (_passes(evidence, arm, {side.layer for side in sides}) for evidence, sides in ((a, change.a), (b, change.b)))
    found = ratio_interval(after, before)
    if found is not None and found.low is not None and found.high is not None and not found.low <= 1 <= found.high:
        return change
    return replace(change, kinds=[kind for kind in change.kinds if kind is not ChangeKind.TIME])


def _passes(evidence: Evidence, arm: str, layers: set[str]) -> list[float]:
    """Sum of the layers' times in each pass, at the first profiled shape."""
    measured = _profiled(evidence, arm)
    own = [time.passes_ms for time in measured if time.layer in layers and time.shape == measured[0].shape]
    return [sum(column) for column in zip(*own, strict=False)]


def _profiled(evidence: Evidence, arm: str) -> list[LayerTime]:
    return [time for time in (evidence.measure.layers if evidence.measure else ()) if time.arm == arm and time.passes_ms]


def _figures(a: Measurement | None, b: Measurement | None) -> list[Figure]:
    before, after = (dict(_points(measured)) if measured else {} for measured in (a, b))
    keys = dict.fromkeys((*before, *after))
    return [Figure(name=name, unit=unit, a=before.get((name, unit)), b=after.get((name, unit))) for name, unit in keys]


def _points(measured: Measurement) -> Iterator[tuple[tuple[str, str], Point]]:
    """Every figure of a measurement under its name and unit."""
    for timing in measured.timings:
        for quantile, found in timing.quantiles.items():
            yield (f"{timing.arm} {quantile} {timing.metric} at {timing.shape}", "ms"), _point(found)
    for ratio in measured.ratios:
        yield (f"{ratio.arm}/{ratio.over} {ratio.quantile} {ratio.metric} at {ratio.shape}", "x"), _point(ratio.ratio)
    for arm, evaluated in measured.quality.items():
        for item in evaluated:
            for head in item.heads:
                yield (f"{arm} {head.head} {head.metric} on {item.split}", ""), Point(value=head.value)
    for size in measured.sizes:
        yield (f"{size.arm} {size.name}", "bytes"), Point(value=float(size.bytes))


def _point(found: Estimate) -> Point:
    return Point(value=found.value, low=found.low, high=found.high)


def _rungs(a: Evidence, b: Evidence) -> list[RungChange]:
    """Rungs that stand otherwise in B, or that only one run judges."""
    before, after = ({item.of: item for item in _ladder(evidence)} for evidence in (a, b))
    changes = []
    for of in dict.fromkeys((*before, *after)):
        mine, theirs = (side[of].steps if of in side else {} for side in (before, after))
        why = after[of].texts if of in after else {}
        changes += [
            RungChange(of=of, step=step, a=mine.get(step), b=theirs.get(step), why=why.get(step, ""))
            for step in Step
            if mine.get(step) != theirs.get(step)
        ]
    return changes


def _ladder(evidence: Evidence) -> list[Rungs]:
    return evidence.gate.ladder if evidence.gate and evidence.gate.ladder else ladder.build(evidence)
