"""What magnitude pruning of an ONNX file did to each weight."""

from __future__ import annotations

from enum import StrEnum

from pipeline.records.check import CheckedModel
from pipeline.records.io import Part, Record


class Action(StrEnum):
    """What happened to one layer's weight."""

    PRUNED = "pruned"
    ALREADY = "already 2:4"
    REFUSED = "refused"


class PrunedLayer(Part, frozen=True, kw_only=True):
    """One operand of one operator."""

    node: str
    graph: str
    op: str
    weight: str | None
    operand: int
    shape: list[int] | None
    axis: int | None
    action: Action
    why: str = ""
    """Why it was refused, or what else is worth knowing."""
    values_zeroed: int = 0
    magnitude_lost: float = 0.0
    """Sum of |w| of the values that were set to zero over that of all values, before pruning."""
    zero_fraction: float | None = None
    """Of the written file; None where the values are not known."""


class PruneReport(Record, frozen=True, kw_only=True, tag="sparsegate.prune/1"):
    """Output of `sparsegate prune`."""

    source: CheckedModel
    output: CheckedModel
    layers: list[PrunedLayer]
    notes: list[str] = []
