"""One layer's whole story in a run: what every stage left of it, in one record."""

from __future__ import annotations

from pipeline.records.check import CheckedLayer
from pipeline.records.io import Part, Record
from pipeline.records.layers import WeightedLayer
from pipeline.records.measurement import Estimate
from pipeline.records.rung import Rung, Step
from pipeline.records.tactics import TacticLayer
from pipeline.records.verdict import Rungs


class StoryRung(Part, frozen=True, kw_only=True):
    """One rung of the story: the layer's own, then the engine's and the service's."""

    of: str
    step: Step
    holds: Rung
    text: str = ""


class StoryTime(Part, frozen=True, kw_only=True):
    """Time of the layer's nodes, with their reformats, in one arm at one shape."""

    arm: str
    shape: str
    layers: list[str]
    ms: float
    """Median over profiling passes."""
    engine_ms: float
    """Median of the same passes' sum over all profiled layers."""
    share: float
    """ms / engine_ms: what an infinitely fast layer could save at most."""


class LayerStory(Record, frozen=True, kw_only=True, tag="sparsegate.story/1"):
    """Output of `sparsegate explain RUN LAYER`."""

    run: str
    layer: WeightedLayer
    decision: str = ""
    criterion: str | None = None
    proposed_by: str | None = None
    kept_magnitude: float | None = None
    zero_fraction: float | None = None
    """Of the frozen weight."""
    ladder: Rungs
    rungs: list[StoryRung] = []
    checked: list[CheckedLayer] = []
    """The operands that its ONNX nodes read, in the sparse arm."""
    engine: list[TacticLayer] = []
    """Engine layers of the sparse arm's build that hold its nodes."""
    times: list[StoryTime] = []
    ratios: list[Estimate] = []
    """Sparse over dense time of the same nodes, per shape in the order of `ratio_shapes`."""
    ratio_shapes: list[str] = []
    next: str = ""
