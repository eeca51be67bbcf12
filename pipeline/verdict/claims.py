"""One rung of one thing, judged; and where several of them put it on the ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from pipeline.records.rung import Rung, Step
from pipeline.records.verdict import Rungs

ARM, OVER = "sparse", "dense"
"""The arm that is to be released, and the one that it has to beat."""


class Claim(NamedTuple):
    """How a rung stands, and the evidence or reason in words."""

    rung: Rung
    text: str


def placed(of: str, claims: Mapping[Step, Claim], decision: str = "") -> Rungs:
    """Where the claims put something on the ladder: the unbroken prefix, the first rung missed, proofs above the gap.

    Rungs that are not applicable neither prove nor break the prefix.
    """
    steps = [step for step in Step if step in claims]
    prefix = list(takewhile(lambda step: claims[step].rung in (Rung.YES, Rung.NOT_APPLICABLE), steps))
    rest = steps[len(prefix) :]
    proven = [step for step in prefix if claims[step].rung is Rung.YES]
    return Rungs(
        of=of,
        steps={step: claims[step].rung for step in steps},
        texts={step: claims[step].text for step in steps if claims[step].text},
        proven=proven[-1] if proven else None,
        missed=rest[0] if rest else None,
        above_gap=[step for step in rest if claims[step].rung is Rung.YES],
        decision=decision,
    )


def together(rungs: Sequence[Rung]) -> Rung:
    """One rung for several parts of one thing: yes only where all that apply are yes."""
    return next((rung for rung in (Rung.DISPUTED, Rung.NO, Rung.UNKNOWN, Rung.YES) if rung in rungs), Rung.NOT_APPLICABLE)
