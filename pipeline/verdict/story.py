"""One layer's story, joined from all records of a run."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from statistics import median

from pipeline.commands import names
from pipeline.errors import InputError
from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.measurement import LayerTime
from pipeline.records.rung import Step
from pipeline.records.story import LayerStory, StoryRung, StoryTime
from pipeline.records.verdict import Rungs
from pipeline.verdict import ladder
from pipeline.verdict.claims import ARM, OVER
from pipeline.verdict.joining import EngineLayers, build_of, weighted_layers
from pipeline.verdict.signs.weights import checked_layers
from pipeline.verdict.time_rungs import TimeRungs

NEXT: dict[Step | None, str] = {
    Step.MASKED: "see the recipe's train.masks, then: sparsegate run {recipe} --from train",
    Step.FROZEN: "a weight grew back or was not masked: sparsegate run {recipe} --from train, or freeze.on_regrowth=remask",
    Step.EXPORTED: "see the axis and the operation that broke it: sparsegate check {onnx}",
    Step.ELIGIBLE: "see which rule keeps it dense: sparsegate check {onnx} {target}",
    Step.TIMED: "build with timed tactics in the log: trtexec --verbose, then: sparsegate tactics LOG",
    Step.SELECTED: "compare both times and their formats above: where dense is faster, leave the layer dense (train.masks.exclude)",
    Step.FASTER_LAYER: "profile both arms with more passes: sparsegate run {recipe} --set measure.layer_passes=10",
    None: "nothing is missing on this layer; see the engine: sparsegate report {run}",
}
"""What to do about the first rung missed."""

STAGE_OF: dict[Step, str] = {
    Step.MASKED: "train",
    Step.FROZEN: "freeze",
    Step.EXPORTED: "export",
    Step.ELIGIBLE: "tactics",
    Step.TIMED: "tactics",
    Step.SELECTED: "tactics",
    Step.FASTER_LAYER: "measure",
}
"""The stage whose record can prove a rung."""


def tell(evidence: Evidence, name: str) -> LayerStory:
    """Everything that the run's records say of one layer.

    Args:
        evidence: The run's records.
        name: The layer's id, a module, the weight, an ONNX node or an engine layer.

    Raises:
        InputError: no layer, or several, go by that name.
    """
    layer = find_layer(evidence, name)
    rows = evidence.gate.ladder if evidence.gate and evidence.gate.ladder else ladder.build(evidence)
    own = next(item for item in rows if item.of == layer.id)
    decision = next((item for item in (evidence.train.layers if evidence.train else ()) if item.layer.id == layer.id), None)
    frozen = next((item for item in (evidence.freeze.layers if evidence.freeze else ()) if item.layer.id == layer.id), None)
    build = build_of(evidence.tactics, ARM) if evidence.tactics else None
    times = TimeRungs(evidence)
    groups = times.groups_of(layer)
    measured = [group for group in groups if group.ratio is not None]
    return LayerStory(
        run=f"{evidence.run.recipe}/{evidence.run.id}" if evidence.run else names(evidence)["run"],
        layer=layer,
        decision=own.decision,
        criterion=decision.criterion if decision else None,
        proposed_by=decision.proposed_by if decision else None,
        kept_magnitude=decision.kept_magnitude if decision else None,
        zero_fraction=frozen.zero_fraction if frozen else None,
        ladder=own,
        rungs=_rungs(own, rows),
        checked=[item for item in checked_layers(evidence) if item.node in layer.onnx_nodes],
        engine=EngineLayers(build).of(layer) if build else [],
        times=[
            time
            for group in groups
            for arm, layers in ((ARM, group.arm_layers), (OVER, group.over_layers))
            for time in _times(evidence, arm, group.shape, layers)
        ],
        ratios=[group.ratio for group in measured if group.ratio is not None],
        ratio_shapes=[group.shape for group in measured],
        next=_next(own.missed, evidence),
    )


def _next(missed: Step | None, evidence: Evidence) -> str:
    known = names(evidence)
    if missed is not None and getattr(evidence, STAGE_OF[missed]) is None:
        return f"run the stage that would tell, {STAGE_OF[missed]}: sparsegate run {known['recipe']}"
    return NEXT[missed].format(**known)


def find_layer(evidence: Evidence, name: str) -> WeightedLayer:
    """The one layer that goes by a name."""
    layers = weighted_layers(evidence)
    found = [layer for layer in layers if name in _called(layer, evidence)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{name!r} names several layers: {', '.join(layer.id for layer in found)}", hint="give one of these ids")
    ids = [layer.id for layer in layers]
    near = [layer for layer in ids if name in layer] or get_close_matches(name, ids, n=3, cutoff=0.4)
    raise InputError(
        f"no layer {name!r} in this run",
        hint=f"the nearest: {', '.join(near[:5])}"
        if near
        else f"it has {len(ids)} layers: sparsegate report {names(evidence)['run']} names them",
    )


def _called(layer: WeightedLayer, evidence: Evidence) -> Iterable[str]:
    yield from (layer.id, *layer.modules, *layer.onnx_nodes)
    yield from (name for name in (layer.weight, layer.initializer) if name)
    build = build_of(evidence.tactics, ARM) if evidence.tactics else None
    if build:
        yield from (item.name for item in EngineLayers(build).of(layer))


def _rungs(own: Rungs, rows: Iterable[Rungs]) -> list[StoryRung]:
    """The layer's rungs, then those of the engine and the service that it serves."""
    beyond = [item for item in rows if Step.MASKED not in item.steps]
    return [
        StoryRung(of=item.of, step=step, holds=item.steps[step], text=item.texts.get(step, ""))
        for item in (own, *beyond)
        for step in Step  # records sort their keys by name
        if step in item.steps
    ]


def _times(evidence: Evidence, arm: str, shape: str, layers: tuple[str, ...]) -> list[StoryTime]:
    """The group's time in one arm, beside the whole engine's profiled time in the same passes."""
    everything = [time for time in (evidence.measure.layers if evidence.measure else ()) if (time.arm, time.shape) == (arm, shape)]
    own = _per_pass([time for time in everything if time.layer in layers])
    whole = _per_pass(everything)
    if not own or not whole or median(whole) <= 0:
        return []
    return [
        StoryTime(
            arm=arm,
            shape=shape,
            layers=list(layers),
            ms=median(own),
            engine_ms=median(whole),
            share=median(own) / median(whole),
        )
    ]


def _per_pass(times: list[LayerTime]) -> list[float]:
    return [sum(column) for column in zip(*(time.passes_ms for time in times), strict=False)]
