"""What a model gets right: per head a metric, overall and by slice."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.io import Part


class Slice(Part, frozen=True, kw_only=True):
    """One part of the evaluated samples, such as a class."""

    axis: str
    """What the samples were sliced by: `class`, a column, a callable's name."""
    name: str
    value: float
    n: int


class HeadQuality(Part, frozen=True, kw_only=True):
    """One task head's metric; the value is the mean of the per-sample scores kept in the predictions file."""

    head: str
    metric: str
    value: float
    n: int
    slices: list[Slice] = []
    higher_is_better: bool = True
    nonfinite: int = 0
    """Samples, of the n, with an output that is NaN or infinite: such an engine is never released."""


class Quality(Part, frozen=True, kw_only=True):
    """One model (or engine) evaluated on one split."""

    split: str
    """`select` or `test`."""
    backend: str
    """What computed the outputs: `torch`, `onnxruntime`, `tensorrt`, ..."""
    heads: list[HeadQuality]
    predictions: Artifact | None = None
