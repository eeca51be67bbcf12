"""The row type of the registry."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How well a statement is known."""

    DOCUMENTED = "documented"
    MAINTAINER = "maintainer said"
    SEEN = "seen"
    SAID = "said"
    INFERRED = "inferred"
    OWN = "own"
    """A decision or definition of sparsegate itself."""


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what it says, for which TensorRT versions, how well known, and where that stands."""

    id: str
    title: str
    """A few words, for a table."""
    text: str
    """One or two sentences, for a person."""
    versions: str = "all"
    """TensorRT versions it holds for, such as `8.x`, `>=10.0`, `<11.0`."""
    level: Level = Level.OWN
    source: str = ""
    next: str = ""
    """What to look at or run next."""
