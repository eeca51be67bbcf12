"""What `train` leaves: weights, masks, the dense baseline, and what was decided for every layer."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.io import Part, Record
from pipeline.records.layers import WeightedLayer
from pipeline.records.permutation import PermutationReport
from pipeline.records.quality import Quality
from pipeline.records.rung import Rung


class LayerDecision(Part, frozen=True, kw_only=True):
    """Why one layer is masked or stays dense."""

    layer: WeightedLayer
    masked: bool
    rule: str
    """Id in `codes`: what decided."""
    text: str
    proposed_by: str | None = None
    """`modelopt` or `sparsegate`."""
    criterion: str | None = None
    kept_magnitude: float | None = None
    """Share of the layer's absolute weight that the mask keeps, 0..1."""
    output_error: float | None = None
    """Calibrated criteria: squared error of the layer's output on the calibration set, relative to the output's own square."""
    magnitude_error: float | None = None
    """The same of the magnitude mask, to compare with."""
    proof: Rung = Rung.UNKNOWN
    """Rung 1: the mask tensor is 2:4 along TensorRT's reduction axis."""


class CalibrationSet(Part, frozen=True, kw_only=True):
    """The samples that a criterion looked at."""

    digest: str
    """sha256 over all tensors."""
    samples: int


class Checkpoint(Record, frozen=True, kw_only=True, tag="sparsegate.checkpoint/1"):
    """Output of `train`."""

    dense: Artifact
    """safetensors: the dense baseline's state dict."""
    weights: Artifact
    """safetensors: the masked model's raw state dict (weights as the optimizer left them)."""
    masks: Artifact
    """safetensors: one bool tensor per masked weight, under the weight's own name."""
    mask_digest: str
    """sha256 over the names, shapes and bits of the masks."""
    history: Artifact | None = None
    """CSV: phase, epoch, loss, score, learning rate, seconds."""
    layers: list[LayerDecision]
    dense_quality: list[Quality] = []
    masked_quality: list[Quality] = []
    device: str = "cpu"
    calibration: CalibrationSet | None = None
    """What the criterion looked at; None where it looks at weights alone."""
    permutation: PermutationReport | None = None
    """What was permuted before masking; None where permutation was off."""
