"""Lines that a container runtime broke: of a long one, all parts but the last are marked `P` (Kubernetes' CRI log format)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PART = re.compile(r"(?P<before>\S{20,40} (?P<stream>stdout|stderr) )(?P<mark>[PF]) ")
_BROKEN = re.compile(rb"^\S{20,40} std(?:out|err) P ", re.MULTILINE)
_BEGINNING = 4096
"""Bytes of a text by which a runtime's log is told."""


class Parts:
    """Joins them: a part waits for the next line of its stream."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def take(self, line: str) -> str | None:
        """A physical line; gives the whole one, or None where more of it is to come."""
        match = _PART.match(line)
        if match is None:
            return line
        before = self._waiting.pop(match["stream"], None)
        whole = f"{match['before']}F {line[match.end() :]}" if before is None else before + line[match.end() :]
        if match["mark"] == "F":
            return whole
        self._waiting[match["stream"]] = whole.rstrip("\r\n")
        return None

    def rest(self) -> Iterator[str]:
        """What still waits: its end is missing."""
        while self._waiting:
            yield self._waiting.pop(next(iter(self._waiting)))


def joined(lines: Iterable[str]) -> Iterator[str]:
    """Lines, those that were broken as one."""
    parts = Parts()
    for line in lines:
        whole = parts.take(line)
        if whole is not None:
            yield whole
    yield from parts.rest()


def holds_parts(block: bytes) -> bool:
    """Whether a block of a container runtime's log has a broken line."""
    return b" std" in block[:_BEGINNING] and _BROKEN.search(block) is not None
