"""Stage 7, gate: all records -> a verdict, each rule with its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.records.verdict import Verdict
from pipeline.stages.base import Sections, Work, pick

REVISION = 2
NEEDS = ("train", "freeze", "export", "build", "tactics", "measure")


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """The budgets."""
    return pick(sections, "gate")


def execute(work: Work) -> Verdict:
    """Judge the recipe's rules over everything that was recorded."""
    from pipeline import api
    from pipeline.records.evidence import Evidence

    section = work.section("gate")
    folders = {stage: upstream.folder for stage, upstream in work.upstream.items()}
    records: dict[str, Any] = {stage: upstream.record for stage, upstream in work.upstream.items()}
    evidence = Evidence(folders=folders, **records)
    return api.judge(evidence, section["rules"], alpha=section["alpha"])
