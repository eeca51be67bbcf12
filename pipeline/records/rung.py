"""The evidence ladder's words, used by every record that claims something about a layer."""

from __future__ import annotations

from enum import StrEnum


class Rung(StrEnum):
    """How one claim stands. No evidence is UNKNOWN: never NO, never YES."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    DISPUTED = "disputed"
    NOT_APPLICABLE = "not-applicable"


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
