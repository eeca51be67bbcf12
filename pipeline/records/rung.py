"""The evidence ladder's words, used by every record that claims something about a layer."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Rung(StrEnum):
    """How one claim stands. No evidence is UNKNOWN: never NO, never YES."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    DISPUTED = "disputed"
    NOT_APPLICABLE = "not-applicable"


def tally(rungs: Iterable[Rung]) -> tuple[int | None, int]:
    """How many are `yes`, and of how many that is not known: a count of layers of which nothing is known is None, never 0.

    >>> tally([Rung.YES, Rung.NO, Rung.UNKNOWN]), tally([Rung.UNKNOWN, Rung.UNKNOWN]), tally([])
    ((1, 1), (None, 2), (None, 0))
    """
    found = list(rungs)
    unknown = sum(rung is Rung.UNKNOWN for rung in found)
    told = any(rung not in (Rung.UNKNOWN, Rung.NOT_APPLICABLE) for rung in found)
    return (sum(rung is Rung.YES for rung in found) if told else None), unknown


class Step(StrEnum):
    """The rungs of the ladder, lowest first. A proof on one fills none below it."""

    MASKED = "masked"
    FROZEN = "frozen"
    EXPORTED = "exported"
    ELIGIBLE = "eligible"
    TIMED = "timed"
    SELECTED = "selected"
    FASTER_LAYER = "faster-layer"
    FASTER_ENGINE = "faster-engine"
    FASTER_REQUEST = "faster-request"
