"""How the ladder's rungs look: marks that are told apart without colour, one row per layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.records.rung import Rung, Step
from pipeline.records.verdict import Rungs
from pipeline.report.table import Column, columns

MARKS: dict[Rung, str] = {Rung.YES: "yes", Rung.NO: "NO", Rung.UNKNOWN: "?", Rung.DISPUTED: "!!", Rung.NOT_APPLICABLE: "-"}
MISSED = {Rung.NO: "disproved for", Rung.UNKNOWN: "unknown for", Rung.DISPUTED: "disputed for"}
LEGEND = "yes proven, NO disproved, ? unknown, !! disputed, - not applicable"

LAYER_STEPS: dict[Step, str] = {
    Step.MASKED: "mask",
    Step.FROZEN: "froz",
    Step.EXPORTED: "onnx",
    Step.ELIGIBLE: "elig",
    Step.TIMED: "timd",
    Step.SELECTED: "sel",
    Step.FASTER_LAYER: "fast",
}
"""Short titles of the rungs of a layer, lowest first."""

NUMBERS: dict[Step, int] = {step: number for number, step in enumerate(Step, start=1)}


def is_layer(rungs: Rungs) -> bool:
    """Whether a row is about a layer, and not about the engine or the service."""
    return Step.MASKED in rungs.steps


def is_dense(rungs: Rungs) -> bool:
    """Whether a layer stays dense by decision and nothing else is claimed of it."""
    return is_layer(rungs) and bool(rungs.decision) and all(rung is Rung.NOT_APPLICABLE for rung in rungs.steps.values())


def layer_columns() -> list[Column]:
    """Layer, rungs 1-7, the highest proven without a gap, the first missed."""
    return columns("@layer", *LAYER_STEPS.values(), ">proven to", "first missed")


def layer_row(rungs: Rungs) -> list[str]:
    """One layer on the ladder."""
    marks = [MARKS[rungs.steps.get(step, Rung.UNKNOWN)] for step in LAYER_STEPS]
    return [rungs.of, *marks, str(NUMBERS[rungs.proven]) if rungs.proven else "-", place(rungs.missed)]


def place(step: Step | None) -> str:
    """`3 exported`; `-` for none."""
    return f"{NUMBERS[step]} {step.value}" if step else "-"


def engine_row(rungs: Rungs) -> list[str]:
    """The engine at one shape, or the service: its one rung, and the measurement that says so."""
    ((step, rung),) = rungs.steps.items()
    return [rungs.of, place(step), MARKS[rung], rungs.texts.get(step, "")]


class Missed(NamedTuple):
    """Layers that miss one rung in one way."""

    step: Step
    rung: Rung
    layers: list[str]
    text: str
    """The reason; the first layer's where there are more reasons than are told."""
    reasons: int


def why_missed(ladder: Sequence[Rungs], told: int = 2) -> list[Missed]:
    """Layers that miss a rung, by reason, in order of appearance.

    Where a rung is missed for more than `told` reasons, such as a measured figure for each layer, the first one stands for all.
    """
    found: dict[tuple[Step, Rung], dict[str, list[str]]] = {}
    for rungs in ladder:
        if is_layer(rungs) and rungs.missed is not None:
            ways = found.setdefault((rungs.missed, rungs.steps[rungs.missed]), {})
            ways.setdefault(rungs.texts.get(rungs.missed, ""), []).append(rungs.of)
    rows = []
    for (step, rung), ways in found.items():
        if len(ways) <= told:
            rows += [Missed(step, rung, layers, text, 1) for text, layers in ways.items()]
        else:
            rows.append(Missed(step, rung, [layer for layers in ways.values() for layer in layers], next(iter(ways)), len(ways)))
    return rows


def above_gap(ladder: Sequence[Rungs]) -> list[str]:
    """Proofs above the first rung missed, one text per layer."""
    return [f"{rungs.of}: {', '.join(place(step) for step in rungs.above_gap)}" for rungs in ladder if rungs.above_gap]
