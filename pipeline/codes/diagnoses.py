"""What an observation establishes, and the next check (5xx)."""

from __future__ import annotations

from pipeline.codes.model import Code

DIAGNOSES: tuple[Code, ...] = ()
