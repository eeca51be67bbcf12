"""docs/rules.md: the rules and hints of the ONNX check, made from the registry."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.codes.model import Code
from pipeline.codes.rules import HINTS, RULES

_HEAD = """\
# Rules and hints of `sparsegate check`

This file is generated from `pipeline/codes/rules.py` by `make docs`.

An id never changes its meaning. Every rule names how well it is known: documented by NVIDIA, said by a maintainer, seen (in a
log, a report, or tried), said elsewhere, inferred, or sparsegate's own. A layer is eligible `yes` when every rule that concerns
it passes, `no` when one fails, else `unknown`. Hints are predictions about selection, or facts worth a look: they never change
eligibility.
"""


def markdown() -> str:
    """The whole document."""
    return "\n".join([_HEAD, "## Rules: is the layer eligible?", "", *_rows(RULES), "## Hints", "", *_rows(HINTS)]).rstrip() + "\n"


def _rows(codes: Sequence[Code]) -> list[str]:
    lines = []
    for code in codes:
        lines += [f"### {code.id} {code.title}", "", code.text, ""]
        facts = [f"holds for TensorRT: {code.versions}", f"known: {code.level.value}"]
        facts += [f"source: {code.source}"] if code.source else []
        facts += [f"next: {code.next}"] if code.next else []
        lines += [*(f"- {fact}" for fact in facts), ""]
    return lines
