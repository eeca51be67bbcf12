"""What a line of structure does to the tables of one build: which layer, format combination or runner it names."""

from __future__ import annotations

import re
from array import array

import numpy as np

from pipeline.tactics.columns import ID_DIGITS, Lines
from pipeline.tactics.combinations import IGNORED, NONE
from pipeline.tactics.lookup import Lookup
from pipeline.tactics.names import is_damaged
from pipeline.tactics.prefixes import EMBEDDED
from pipeline.tactics.tables import REFORMAT, Tables
from pipeline.tactics.timed import DASHES, EQUALS, NOTHING, SLOW, STARS

_STRUCTURAL = re.compile(
    r"(?P<costs>={9,} Computing costs for ?(?P<cost_layer>.*))|"
    r"(?P<combination>\*{9,} Autotuning format combination: ?(?P<format>.*?) ?\*{15})|"
    r"(?P<reformat>\*{9,} Autotuning Reformat: ?.*\*{15})|"
    r"(?P<runner>-{9,} Timing Runner: (?P<layer>.*) \((?P<name>[^()]*)\))"
)
_FOR_THE_SLOW_WAY = -1
_CHOICE = re.compile(rb">{9,} Chose Runner Type: [!-~]*")
_ODD_CHOICE = re.compile(_CHOICE.pattern + rb" Tactic: (-?\d{1,19})")
_ID_HEAD = b" Tactic: 0x"


class Actions:
    """Lines of structure as (kind, number, number); kept, since most such lines come again.

    | kind | numbers |
    |---|---|
    | EQUALS: `Computing costs for L` | layer, or NONE |
    | STARS: `Autotuning format combination: F` | format |
    | DASHES: `Timing Runner: L (R)` | layer and runner; IGNORED and 0 for a reformat's |
    | NOTHING: `Autotuning Reformat` | IGNORED |
    | SLOW: not exactly of its form | |
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._known = array("Q")
        self._lookup = Lookup(self._add, last=_FOR_THE_SLOW_WAY)
        self._choices = Lookup(lambda head: 0 if _CHOICE.fullmatch(head) else _FOR_THE_SLOW_WAY)

    def __len__(self) -> int:
        return len(self._known) // 3

    def one(self, message: bytes) -> tuple[int, int, int]:
        """What one line does."""
        at = self._lookup.number(message) * 3
        return (SLOW, 0, 0) if at < 0 else (self._known[at], self._known[at + 1], self._known[at + 2])

    def of(self, block: bytes, lines: Lines, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """What the messages from `start` to `end` in the block of `lines` do: uint64 [n, 3].

        Behind a line that is for the slow way, where another build may begin, no new name is given a number: all is SLOW.
        """
        numbers = self._lookup.of(block, lines, start, end)
        found = np.zeros((len(numbers), 3), np.uint64)
        told = numbers != _FOR_THE_SLOW_WAY
        found[told] = np.frombuffer(self._known, np.uint64).reshape(-1, 3)[numbers[told]]
        return found

    def choices(self, block: bytes, lines: Lines, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, str]]:
        """Ids of the choices of the lines `at`.

        Returns:
            uint64 [n] the ids; bool [n], False where a line is not exactly of its form; and by index the ids as printed that
            are not `0x` and sixteen lower-case digits.
        """
        start, end = lines.starts[at] + lines.width, lines.ends[at]
        ids, ok = lines.ids(end - ID_DIGITS)
        before = end - ID_DIGITS - len(_ID_HEAD)
        ok &= lines.holding(before, _ID_HEAD) & (before > start)
        ok[ok] = self._choices.of(block, lines, start[ok], before[ok]) >= 0
        odd: dict[int, str] = {}
        for i in np.flatnonzero(~ok).tolist():
            if match := _ODD_CHOICE.fullmatch(block, int(start[i]), int(end[i])):
                odd[i] = match[1].decode()
                ids[i], ok[i] = int(odd[i]) & NONE, True
        return ids, ok, odd

    def _add(self, message: bytes) -> int:
        action = self._read(message)
        if action is None:
            return _FOR_THE_SLOW_WAY
        self._known.extend(action)
        return len(self) - 1

    def _read(self, message: bytes) -> tuple[int, int, int] | None:
        text = message.decode("utf-8", "replace")
        match = _STRUCTURAL.fullmatch(text)
        if match is None or ("] [" in text and EMBEDDED.search(text)):
            return None
        if any(part and is_damaged(part) for part in match.group("cost_layer", "format", "layer", "name")):
            return None
        if match["costs"]:
            layer = match["cost_layer"].strip()
            return EQUALS, self.tables.layers.number(layer) if layer else NONE, 0
        if match["combination"]:
            return STARS, self.tables.formats.number(match["format"]), 0
        if match["reformat"]:
            return NOTHING, IGNORED, 0
        if REFORMAT.match(match["layer"]) or REFORMAT.match(match["name"]):
            return DASHES, IGNORED, 0
        return DASHES, self.tables.layers.number(match["layer"]), self.tables.runners.number(match["name"])
