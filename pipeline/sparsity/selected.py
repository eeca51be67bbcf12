"""Giving dense weights back to layers in which no build selected a sparse tactic: their masks cost accuracy for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.errors import InputError
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer, TacticReport


@dataclass(frozen=True)
class Returned:
    """Which masked layers get their dense weights back, and which keep their masks, by weight key, each with the reason."""

    dense: dict[str, str]
    masked: dict[str, str]


def only_where_selected(report: TacticReport, layers: Sequence[WeightedLayer], *, arm: str = "sparse", builds: int = 3) -> Returned:
    """Sort masked layers by what the builds of an earlier run selected for them.

    A layer goes back to dense weights only if every build of the arm is known to run dense tactics for all of its nodes, in
    all profiles. Selected in some builds, disputed or unknown: it keeps its mask, and the text says which.

    Args:
        report: The earlier run's tactic report.
        layers: Its masked layers, with weight keys and ONNX nodes.
        arm: The arm whose builds count.
        builds: Least number of builds that make a selection stable (builds differ: see docs/methods.md).

    Raises:
        InputError: the backend has no sparse tactics, or there are too few builds.
    """
    if not report.applicable:
        raise InputError(
            f"that run says nothing about sparse tactics: {report.why_not or 'its backend has none'}",
            where="train.masks.only_where_selected",
            hint="name a run on TensorRT",
        )
    mine = [build for build in report.builds if (build.arm or arm).partition("#")[0] == arm and build.result != "failed"]
    if len(mine) < builds:
        raise InputError(
            f"{len(mine)} builds of the arm {arm!r}, and {builds} are needed to call a selection stable",
            where="train.masks.only_where_selected",
            hint=f"run it with build.repeats: {builds}, or lower train.masks.stable_builds",
        )
    returned = Returned({}, {})
    for layer in layers:
        if layer.weight is None:
            continue
        outcomes = [_selected(_holding(build, layer)) for build in mine]
        text = _text(outcomes)
        (returned.dense if all(one is Rung.NO for one in outcomes) else returned.masked)[layer.weight] = text
    return returned


def _holding(build: Build, layer: WeightedLayer) -> list[TacticLayer]:
    nodes = set(layer.onnx_nodes)
    return [one for one in build.layers if nodes & set(one.onnx_nodes or one.parts or [one.name])]


def _selected(layers: Iterable[TacticLayer]) -> Rung:
    """Over the engine layers that hold a weighted layer: one sparse is enough for yes, all must be dense for no."""
    found = {one.selected for one in layers}
    for rung in (Rung.YES, Rung.DISPUTED, Rung.UNKNOWN):
        if rung in found:
            return rung
    return Rung.NO if found == {Rung.NO} else Rung.UNKNOWN


def _text(outcomes: Sequence[Rung]) -> str:
    if all(one is Rung.NO for one in outcomes):
        return f"dense tactics in all {len(outcomes)} builds"
    counts = {rung: outcomes.count(rung) for rung in (Rung.YES, Rung.NO, Rung.DISPUTED, Rung.UNKNOWN)}
    words = {Rung.YES: "selected", Rung.NO: "not selected", Rung.DISPUTED: "disputed", Rung.UNKNOWN: "unknown"}
    return ", ".join(f"{words[rung]} in {count} of {len(outcomes)} builds" for rung, count in counts.items() if count)
