"""What `freeze` leaves: plain weights that are proved to hold the masks' pattern."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.io import Part, Record
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung


class FrozenLayer(Part, frozen=True, kw_only=True):
    """Rung 2 of one masked layer."""

    layer: WeightedLayer
    proof: Rung
    zero_fraction: float
    text: str


class FrozenModel(Record, frozen=True, kw_only=True, tag="sparsegate.frozen/1"):
    """Output of `freeze`."""

    sparse: Artifact
    """safetensors: plain weights, zeros as +0.0."""
    dense: Artifact
    """safetensors: the dense baseline."""
    mask_digest: str
    weights_digest: str
    """sha256 over names, shapes and bytes of the frozen weights."""
    layers: list[FrozenLayer]
    max_difference: float
    """Worst absolute difference of outputs against the masked model: must be 0."""
    remasked: list[str] = []
    """Weights that had grown back and were masked again because the recipe says so."""
