"""docs/troubleshooting.md, written from the diagnosis table: `python -m pipeline.report.troubleshooting > docs/troubleshooting.md`."""

from __future__ import annotations

import sys

from pipeline.codes import DIAGNOSES, Code, Level
from pipeline.commands import names
from pipeline.records.evidence import Evidence
from pipeline.report.table import md

HEAD = """# What a report's findings mean

`sparsegate report RUN` ends with the findings that apply, gravest first. A finding is an observation over the run's records, what
it establishes, and the next command. This page holds all of them; it is made from `pipeline/codes/diagnoses.py` (`make docs`).
"""


def markdown() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(row) for row in DIAGNOSES)])


def _section(row: Code) -> str:
    step = md(row.next.format(**names(Evidence())))
    return f"## {row.id}: {md(row.title)}\n\n{md(row.text)}\n\nNext: {step}.\n\n{_known(row)}\n"


def _known(row: Code) -> str:
    if row.level is Level.OWN:
        return "Known: by comparing sparsegate's own records."
    source = f" ({md(row.source)})" if row.source else ""
    return f"Known: {row.level.value}{source}; TensorRT {md(row.versions)}."


if __name__ == "__main__":
    sys.stdout.write(markdown())
