"""Choosing layers by glob patterns over their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipeline.errors import InputError


def matcher(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression: `*` any text, `?` one character, all else (so `[` too) stands for itself."""
    body = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern)
    return re.compile(body, re.DOTALL)


def matching(patterns: Sequence[str], names: Iterable[str], *, option: str) -> dict[str, str]:
    """For each name that a pattern matches, the first such pattern.

    Args:
        patterns: Globs.
        names: What they are matched against, whole.
        option: The recipe's key, for the error.

    Raises:
        InputError: a pattern that matches no name at all.
    """
    names = list(names)
    found: dict[str, str] = {}
    for pattern in patterns:
        expression = matcher(pattern)
        hits = [name for name in names if expression.fullmatch(name)]
        if not hits and pattern != "*":
            some = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
            raise InputError(f"the pattern {pattern!r} matches no layer", where=option, hint=f"the layers are {some}")
        for name in hits:
            found.setdefault(name, pattern)
    return found
