"""Why a record is missing."""

from __future__ import annotations

from pipeline.records.evidence import Evidence


def why_missing(evidence: Evidence, stage: str) -> str:
    """Why a stage left no record: it failed, or it has not run."""
    status = next((item for item in (evidence.run.stages if evidence.run else ()) if item.stage == stage and item.status == "failed"), None)
    return f"the {stage} stage failed: {status.reason}" if status else f"the {stage} stage has not run"
