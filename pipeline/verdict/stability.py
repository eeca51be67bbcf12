"""How alike n builds of one network are: builds are not deterministic, and one selection proves nothing about the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.records.difference import LayerStability, Spread, StabilityReport
from pipeline.records.tactics import BestTime, Build
from pipeline.verdict.diff import tactic_class
from pipeline.verdict.environment import build_facts
from pipeline.verdict.matching import Group, group_layers

ENOUGH = 3
"""Builds from which a claim about the recipe may be made."""


def stability(builds: Sequence[Build], names: Sequence[str]) -> StabilityReport:
    """Per group of ONNX nodes: in how many builds a sparse tactic was selected, and the spread of the best times.

    Args:
        builds: At least two builds of one network.
        names: What to call them, in the same order.
    """
    groups = [group for group in group_layers([build.layers for build in builds]) if any(group.layers)]
    layers = [_layer(group, len(builds)) for group in groups]
    facts = [build_facts(build) for build in builds]
    uneven = [name for name in dict.fromkeys(n for found in facts for n in found) if len({found.get(name) for found in facts}) > 1]
    return StabilityReport(
        builds=list(names),
        layers=sorted(layers, key=lambda item: (not _changes(item), -item.selected, item.layer)),
        changing=sum(map(_changes, layers)),
        environment=uneven,
        next=_next(len(builds), layers),
    )


def _next(builds: int, layers: Sequence[LayerStability]) -> str:
    """What to do; that a selection held is said only where every build tells it of every layer."""
    if any(map(_changes, layers)):
        return "release an engine with the timing cache it was built with, and require selection of the engine that is released"
    if not layers:
        return "no build shows a layer: build with the sparsity flag on and a verbose log (trtexec --sparsity=enable --verbose)"
    if unknown := [item for item in layers if item.unknown]:
        first = max(unknown, key=lambda item: item.selected)
        where = f"{first.layer}: unknown in {first.unknown} of {builds}"
        return (
            f"selection is not known in every build for {len(unknown)} of {len(layers)} layers ({where}), so nothing says that it held: "
            "compare verbose logs of builds with the sparsity flag on"
        )
    return "the selection held in every build" if builds >= ENOUGH else f"build at least {ENOUGH} times before calling it stable"


def _changes(item: LayerStability) -> bool:
    return bool(item.selected and item.dense)


def _layer(group: Group, builds: int) -> LayerStability:
    classes = [{tactic_class(layer) for layer in layers} for layers in group.layers]
    members = [layer for layers in group.layers for layer in layers]
    selected, dense = sum("sparse" in found for found in classes), sum(found == {"dense"} for found in classes)
    return LayerStability(
        layer=members[0].name,
        nodes=sorted(group.nodes),
        selected=selected,
        dense=dense,
        unknown=builds - selected - dense,
        sparse_ms=_spread(layer.best.sparse for layer in members if layer.best),
        dense_ms=_spread(layer.best.dense for layer in members if layer.best),
    )


def _spread(times: Iterable[BestTime | None]) -> Spread | None:
    known = [time.ms for time in times if time is not None]
    return Spread(low=min(known), high=max(known), n=len(known)) if known else None
