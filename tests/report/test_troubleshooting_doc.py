"""docs/troubleshooting.md is made from the diagnosis table."""

from __future__ import annotations

from pathlib import Path

from pipeline.codes import DIAGNOSES
from pipeline.report.troubleshooting import markdown

DOC = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"


def test_the_page_is_current():
    assert DOC.read_text() == markdown(), "make docs"


def test_every_diagnosis_has_its_section():
    for row in DIAGNOSES:
        assert f"## {row.id}: " in markdown()
