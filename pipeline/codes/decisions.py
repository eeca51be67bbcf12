"""Why a layer is masked or stays dense in training (3xx)."""

from __future__ import annotations

from pipeline.codes.model import Code

DECISIONS: tuple[Code, ...] = ()
