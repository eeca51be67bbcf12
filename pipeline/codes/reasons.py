"""Why a layer is or is not selected, and how sources can contradict each other."""

from __future__ import annotations

from pipeline.codes.model import Code

REASONS: tuple[Code, ...] = ()
CONFLICTS: tuple[Code, ...] = ()
