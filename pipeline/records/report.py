"""What `sparsegate report RUN` shows, as data."""

from __future__ import annotations

from pipeline.records.checkpoint import CalibrationSet, LayerDecision
from pipeline.records.estimate import EstimateReport
from pipeline.records.io import Part, Record
from pipeline.records.measurement import Measurement
from pipeline.records.permutation import PermutationReport
from pipeline.records.run import Run
from pipeline.records.verdict import Verdict


class Masks(Part, frozen=True, kw_only=True):
    """How the weights became 2:4."""

    layers: list[LayerDecision]
    calibration: CalibrationSet | None = None
    permutation: PermutationReport | None = None


class RunReport(Record, frozen=True, kw_only=True, tag="sparsegate.report/1"):
    """Output of `sparsegate report RUN --format json`: the records behind the text, each whole."""

    outcome: str
    """The first word of the text: `PASS`, `FAIL`, `INCONCLUSIVE`, or how the run ended where no budget was judged."""
    run: Run
    """With result `killed` in place of `running` where its process is gone."""
    folder: str | None
    backend: str | None
    """What built the engines."""
    verdict: Verdict
    """Rules, ladder, findings (their commands name this run), bounds and notes."""
    masks: Masks | None = None
    """None where nothing was trained."""
    measurement: Measurement | None = None
    """Latency, ratios, layer times, quality, sizes and the conditions under which they were measured."""
    estimate: EstimateReport | None = None
    """At most how much faster by shapes, where the recipe asks for it."""
    next: str
    """The one thing to do next."""
