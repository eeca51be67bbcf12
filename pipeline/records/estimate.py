"""Will 2:4 pay? Work per layer, and upper bounds of the gain by GPU."""

from __future__ import annotations

from pipeline.records.io import Part, Record
from pipeline.records.rung import Rung

SPARSE_RATIO = 2.0
"""Sparse over dense peak of every NVIDIA GPU that has sparse tensor cores."""


def amdahl(total: float, eligible: float, ratio: float) -> float:
    """Speed-up where `eligible` of `total` time runs `ratio` times faster.

    >>> amdahl(20.0, 6.0, 2.0)
    1.1764705882352942
    """
    return total / (total - eligible + eligible / ratio)


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
    """At most so much faster, from measured layer times instead of shapes (Amdahl 1967)."""

    source: str
    total_ms: float
    eligible_ms: float
    """Of layers that could be eligible."""
    unmatched_ms: float = 0.0
    """Of layers whose ONNX nodes are not known: counted as eligible, so that the bound stays one."""
    ratio: float
    """Sparse over dense peak that is granted to every eligible layer."""
    at_most: float
    ceiling: float | None
    """The same if eligible layers took no time at all; None where they are everything."""

    @classmethod
    def of(cls, source: str, total_ms: float, eligible_ms: float, *, ratio: float, unmatched_ms: float = 0.0) -> ProfileBound:
        """Both bounds of a share of measured time.

        >>> bound = ProfileBound.of("profile.json", 20.0, 6.0, ratio=2.0)
        >>> round(bound.at_most, 2), round(bound.ceiling, 2)
        (1.18, 1.43)
        """
        rest = total_ms - eligible_ms
        return cls(
            source=source,
            total_ms=total_ms,
            eligible_ms=eligible_ms,
            unmatched_ms=unmatched_ms,
            ratio=ratio,
            at_most=amdahl(total_ms, eligible_ms, ratio) if total_ms else 1.0,
            ceiling=total_ms / rest if rest > 0 else None,
        )


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
