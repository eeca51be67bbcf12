"""A run's report as one record: what the text shows in words."""

from __future__ import annotations

from pipeline.records.evidence import Evidence
from pipeline.records.report import Masks, RunReport
from pipeline.report.next_step import next_step
from pipeline.report.run_rows import outcome


def run_report(evidence: Evidence) -> RunReport:
    """Everything that the report of a judged run shows.

    Args:
        evidence: As `api.judged` gives it: with run.json and a verdict.
    """
    assert evidence.run is not None and evidence.gate is not None
    train = evidence.train
    return RunReport(
        outcome=outcome(evidence),
        run=evidence.run,
        folder=str(evidence.folder) if evidence.folder else None,
        backend=evidence.build.backend if evidence.build else None,
        verdict=evidence.gate,
        masks=Masks(layers=train.layers, calibration=train.calibration, permutation=train.permutation) if train else None,
        measurement=evidence.measure,
        estimate=evidence.export.estimate if evidence.export else None,
        next=next_step(evidence),
    )
