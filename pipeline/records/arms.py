"""What `export` leaves: ONNX files by arm, the proof of rung 3, parity, and which nodes are which layer."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.check import CheckReport
from pipeline.records.estimate import EstimateReport
from pipeline.records.io import Part, Record
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung


class Parity(Part, frozen=True, kw_only=True):
    """Outputs of the ONNX file in ONNX Runtime against the torch model, at one batch size."""

    arm: str
    batch: int
    max_abs: float
    max_rel: float
    agreement: float
    """Share of samples whose arg-max agrees, 0..1."""
    rows_identical: bool
    """Identical input rows gave identical output rows."""
    repeatable: bool
    """The same call twice gave the same bytes."""
    passed: bool
    computed: str = "as exported"
    """`float32 copy` where the runtime cannot compute in the file's own type: structure and weights are compared, not its rounding."""


class ExportedLayer(Part, frozen=True, kw_only=True):
    """Rung 3 of one layer."""

    layer: WeightedLayer
    proof: Rung
    text: str


class OnnxArm(Part, frozen=True, kw_only=True):
    """One ONNX file."""

    arm: str
    model: Artifact
    precision: str
    opset: int
    check: CheckReport


class OnnxArms(Record, frozen=True, kw_only=True, tag="sparsegate.arms/1"):
    """Output of `export`."""

    arms: list[OnnxArm]
    layers: list[ExportedLayer]
    parity: list[Parity] = []
    inputs: dict[str, list[int | str]] = {}
    """Shape by input name; a dynamic axis is its name."""
    batch: dict[str, int] = {}
    """min, opt, max."""
    estimate: EstimateReport | None = None
    """At most how much faster NVIDIA GPUs could run the sparse arm at the opt batch; None where shapes stay open."""

    def named(self, arm: str) -> OnnxArm:
        """The arm of a name that this export wrote, such as an engine's `onnx_arm`."""
        return next(one for one in self.arms if one.arm == arm)
