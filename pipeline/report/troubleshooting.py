"""docs/troubleshooting.md, written from the diagnosis table: `python -m pipeline.report.troubleshooting > docs/troubleshooting.md`."""

from __future__ import annotations

import sys

from pipeline.codes import DIAGNOSES, Code
from pipeline.report.table import md

HEAD = """# What a report's findings mean

`sparsegate report RUN` ends with the findings that apply, gravest first. A finding is an observation over the run's records, what
it establishes, and the next command. This page holds all of them; it is made from `pipeline/codes/diagnoses.py` (`make docs`).
"""


def markdown() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(row) for row in DIAGNOSES)])


def _section(row: Code) -> str:
    known = f"Known: {row.level.value}" + (f" ({md(row.source)})" if row.source else "") + f"; TensorRT {md(row.versions)}."
    step = md(row.next.replace("{run}", "RUN").replace("{recipe}", "RECIPE"))
    return f"## {row.id}: {md(row.title)}\n\n{md(row.text)}\n\nNext: {step}.\n\n{known}\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
