"""What the records together establish: rows of the diagnosis table, evaluated over a run."""

from __future__ import annotations

from pipeline.records.evidence import Evidence
from pipeline.records.verdict import Finding


def diagnose(evidence: Evidence) -> list[Finding]:
    """The rows that apply, gravest first."""
    return []
