"""What a channel permutation found: every layer permuted or refused, and why."""

from __future__ import annotations

from typing import Literal

from pipeline.records.io import Part
from pipeline.records.layers import WeightedLayer


class PermutedLayer(Part, frozen=True, kw_only=True):
    """One layer's input channels."""

    layer: WeightedLayer
    outcome: Literal["permuted", "unchanged", "refused"]
    rule: str
    """Id in `codes`."""
    text: str
    moved: int = 0
    """Input channels that now lie elsewhere."""
    kept_before: float | None = None
    """Share of the absolute weight that magnitude 2:4 keeps in the old order, 0..1."""
    kept_after: float | None = None
    """The same in the new order."""


class PermutationReport(Part, frozen=True, kw_only=True):
    """Output of the channel permutation."""

    layers: list[PermutedLayer]
    seconds: float
    """Time that the search was given."""
    seed: int
    spaces: int = 0
    """Sets of channels that were searched."""
    difference: float | None = None
    """Worst difference of the outputs, relative to the largest output; None where nothing moved."""
    precision: str | None = None
    """Type in which the outputs were compared."""
    complete: bool = True
    """False where the time was over before the search's nominal work: another run may find another order."""
