"""A stored baseline: figures of an earlier release with the conditions they hold under. Small, reviewable, kept in git."""

from __future__ import annotations

from pipeline.records.io import Part, Record
from pipeline.records.measurement import Estimate


class BaselineLatency(Part, frozen=True, kw_only=True):
    """One latency figure in ms."""

    shape: str
    inputs: dict[str, list[int]]
    metric: str
    quantile: str
    estimate: Estimate
    source: str
    """Run that it was measured in."""


class BaselineQuality(Part, frozen=True, kw_only=True):
    """One quality figure."""

    head: str
    metric: str
    split: str
    value: float
    n: int
    higher_is_better: bool = True


class Baseline(Record, frozen=True, kw_only=True, tag="sparsegate.baseline/1"):
    """What `gate --save-baseline` writes."""

    name: str
    arm: str
    recipe: str
    run: str
    backend: str
    device: str
    settings: dict[str, str] = {}
    """As the measurement's conditions: those that must match are compared, the others label the comparison."""
    model: str | None = None
    """sha256 of the arm's ONNX file."""
    latency: list[BaselineLatency] = []
    quality: list[BaselineQuality] = []
    sizes: dict[str, int] = {}
    """Bytes by figure."""
    energy: dict[str, Estimate] = {}
    """Millijoules by shape."""
