"""Eligibility rules (1xx) and hints on selection (2xx)."""

from __future__ import annotations

from pipeline.codes.model import Code

RULES: tuple[Code, ...] = ()
HINTS: tuple[Code, ...] = ()
