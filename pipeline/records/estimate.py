"""Will 2:4 pay? Work per layer, and upper bounds of the gain by GPU."""

from __future__ import annotations

from pipeline.records.io import Part, Record
from pipeline.records.rung import Rung


class LayerWork(Part, frozen=True, kw_only=True):
    """Arithmetic and traffic of one operator at the given shapes."""

    node: str
    op: str
    flops: int
    """Multiplications and additions of the dense operator."""
    weight_bytes: int
    input_bytes: int
    output_bytes: int
    could: Rung
    """Could it be eligible once its weights are 2:4? Unknown counts as yes in the bounds."""
    why: str = ""
    """The rule that keeps it from being eligible, or leaves it open."""

    @property
    def total_bytes(self) -> int:
        """Everything that the operator must read and write once."""
        return self.weight_bytes + self.input_bytes + self.output_bytes

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.total_bytes


class GpuBound(Part, frozen=True, kw_only=True):
    """At most so much faster on one GPU."""

    gpu: str
    sm: str
    kind: str
    """Type and accumulator, such as `fp16 with fp32 accumulation`."""
    dense_tops: float
    sparse_tops: float
    gb_per_s: float
    mathematics: float
    """Dense time over sparse time where only arithmetic counts."""
    share: float
    """Of the dense arithmetic, in layers that could be eligible."""
    traffic: float
    """The same where weights and activations must be moved too (roofline), sparse weights packed."""
    memory_bound: int
    """Layers whose traffic takes longer than their arithmetic: their packed-weight gain is not seen in practice."""
    source: str


class ProfileBound(Part, frozen=True, kw_only=True):
    """At most so much faster, from measured layer times instead of shapes (Amdahl's law)."""

    source: str
    total_ms: float
    eligible_ms: float
    """Of layers that could be eligible."""
    unmatched_ms: float
    """Of layers whose ONNX nodes are not known: counted as eligible, so that the bound stays one."""
    ratio: float
    """Sparse over dense peak that is granted to every eligible layer."""
    at_most: float


class EstimateReport(Record, frozen=True, kw_only=True, tag="sparsegate.estimate/1"):
    """Output of `sparsegate check --estimate`."""

    model: str
    shapes: dict[str, list[int]]
    """The inputs' shapes that the figures hold for."""
    dtype: str
    """Type that weights and activations are counted in."""
    layers: list[LayerWork]
    gpus: list[GpuBound]
    profile: ProfileBound | None = None
    notes: list[str] = []
    next: str = ""
