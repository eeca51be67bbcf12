"""Every rule, reason, conflict and diagnosis that a report may name: one row each, with its evidence.

Ids are stable: a released id never changes its meaning (a golden test holds the list). Rules are `SG` and three
digits: 1xx eligibility, 2xx hints on selection, 3xx training decisions, 5xx diagnoses; reasons and conflicts are slugs.
"""

from __future__ import annotations

from pipeline.codes.decisions import DECISIONS
from pipeline.codes.diagnoses import DIAGNOSES
from pipeline.codes.model import Code, Level
from pipeline.codes.reasons import CONFLICTS, FINDINGS, REASONS
from pipeline.codes.rules import HINTS, RULES

__all__ = [
    "CONFLICTS",
    "DECISIONS",
    "DIAGNOSES",
    "FINDINGS",
    "HINTS",
    "REASONS",
    "REGISTRY",
    "RULES",
    "Code",
    "Level",
    "get",
]

_TABLES = (RULES, HINTS, DECISIONS, REASONS, CONFLICTS, FINDINGS, DIAGNOSES)
REGISTRY: dict[str, Code] = {code.id: code for table in _TABLES for code in table}


def get(code: str) -> Code:
    """The row of a code; KeyError if there is none (a programming error: codes come from this registry)."""
    return REGISTRY[code]
