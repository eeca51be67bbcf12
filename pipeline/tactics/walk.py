"""One block's lines of structure, in order: which layer and format combination each timed tactic belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import Protocol

import numpy as np

from pipeline.tactics.columns import Lines
from pipeline.tactics.combinations import IGNORED, NONE, STRIDE
from pipeline.tactics.names import is_damaged
from pipeline.tactics.prefixes import EMBEDDED
from pipeline.tactics.tables import REFORMAT, Tables
from pipeline.tactics.timed import CHOSE, DASHES, EQUALS, FASTEST, NOTHING, SLOW, STARS, TACTIC, Timed

CHOSE_HEAD = b">>>>>>>>>>>>>>> Chose Runner Type: "
_ODD_CHOICE = re.compile(rb">{9,} Chose Runner Type: [!-~]* Tactic: (-?\d{1,19})")
_STRUCTURAL = re.compile(
    r"(?P<costs>={9,} Computing costs for ?(?P<cost_layer>.*))|"
    r"(?P<combination>\*{9,} Autotuning format combination: ?(?P<format>.*?) ?\*{15})|"
    r"(?P<reformat>\*{9,} Autotuning Reformat: ?.*\*{15})|"
    r"(?P<runner>-{9,} Timing Runner: (?P<layer>.*) \((?P<name>[^()]*)\))"
)


class Actions:
    """What each line of structure does to the tables of one build; kept, since most such lines come again."""

    def __init__(self) -> None:
        self.memo: dict[bytes, tuple[int, int, int]] = {}

    def compile(self, message: bytes, tables: Tables) -> tuple[int, int, int]:
        """Read a line that is not in the memo."""
        text = message.decode("utf-8", "replace")
        match = _STRUCTURAL.fullmatch(text)
        action = (SLOW, 0, 0)
        if match is None or is_damaged(text) or ("] [" in text and EMBEDDED.search(text)):
            pass
        elif match["costs"]:
            layer = match["cost_layer"].strip()
            action = (EQUALS, tables.layers.number(layer) if layer else NONE, 0)
        elif match["combination"]:
            action = (STARS, tables.formats.number(match["format"]), 0)
        elif match["reformat"]:
            action = (NOTHING, 0, 0)
        elif REFORMAT.match(match["layer"]) or REFORMAT.match(match["name"]):
            action = (DASHES, IGNORED, 0)
        else:
            action = (DASHES, tables.layers.number(match["layer"]), tables.runners.number(match["name"]))
        self.memo[message] = action
        return action


class Way(Protocol):
    """What the walk asks of `FastWay`."""

    slow: Callable[[int, bytes, bool], None]
    tables: Callable[[], Tables | None]
    actions: Actions

    def move(self, tables: Tables, timed: Timed, since: int, until: int, ignored: list[tuple[int, int]], first: int) -> None: ...


class Walk:
    """One block. This is `Tables`' own logic with its state in local names."""

    def __init__(self, way: Way, tables: Tables, block: bytes, lines: Lines, kinds: np.ndarray, timed: Timed, first: int) -> None:
        self.way, self.tables, self.block, self.timed, self.first = way, tables, block, timed, first
        picked = (kinds != TACTIC) & (kinds != NOTHING)
        at = picked.nonzero()[0]
        repeated = ((kinds[at][1:] == FASTEST) & (kinds[at][:-1] == DASHES)).nonzero()[0]
        self.before_left_out = at[repeated]
        """Lines that name a layer and its runner; what names them again at the end of their tactics is left out."""
        at = np.delete(at, repeated + 1)
        self.last = len(kinds)
        self.at: list[int] = at.tolist()
        self.kinds = kinds[at].tolist()
        self.reached = timed.before(at).tolist()
        self.total = timed.before_line(self.last)
        self.start = lines.starts[at].tolist()
        self.end = lines.ends[at].tolist()
        self.width = lines.width
        winners = lines.choices(block, at, kinds[at] == CHOSE, CHOSE_HEAD)
        lines_of = zip(self.kinds, self.at, self.reached, self.start, self.end, winners)
        self.items = chain(lines_of, [(SLOW, self.last, self.total, 0, 0, None)])
        """Goes on behind the line that was read the slow way; the last one is the end, which reaches all timed tactics."""

    def run(self) -> int:
        """Take all lines; returns how many were read: fewer than all where a build ended, or where the rest must be looked at anew."""
        tables = self.tables
        moved = index = 0
        while True:
            if self.way.tables() is not tables:
                return self.at[index - 1] + 1
            index, reached, ignored = self._stretch(tables, index, moved)
            self.way.move(tables, self.timed, moved, reached, ignored, self.first)
            moved = reached
            if index == len(self.at):
                return self.last
            at = self.at[index]
            alone = index + 1 >= len(self.at) or self.at[index + 1] > at + 1 or self.kinds[index + 1] != SLOW
            self.way.slow(self.first + at, self.block[self.start[index] : self.end[index]], alone and at + 1 < self.last)
            index += 1
            if (tables.pending and self._named_before(index, moved)) or (self.before_left_out == at).any():
                return at + 1

    def _named_before(self, index: int, reached: int) -> bool:
        """Whether the next timed tactic is without name, so that it may have the one that was read the slow way: no line between tells."""
        if reached == self.total or self.timed.end[reached]:
            return False
        following = next((at for at, kind in zip(self.at[index:], self.kinds[index:]) if kind != FASTEST), self.last)
        return bool(self.timed.line[reached] < following)

    def _stretch(self, tables: Tables, index: int, moved: int) -> tuple[int, int, list[tuple[int, int]]]:  # noqa: C901 - one loop, no calls: the hot one
        """Read up to the next line for the slow way; returns its index (or that of the end), the tactics reached and those of reformats."""
        memo, block, width, first = self.way.actions.memo, self.block, self.width, self.first
        rows, extend = tables.rows, tables.rows.extend
        costs, layer, format_ = tables.at
        is_open, offset, cursor = tables.open, tables.cursor - moved, tables.cursor
        runner = tables.runner[-1]
        begun = index
        ignored: list[tuple[int, int]] = []
        for kind, at, reached, start, end, winner in self.items:
            if reached + offset != cursor:
                if layer == IGNORED:
                    ignored.append((cursor - offset, reached))
                    offset = cursor - reached
                elif not is_open:
                    extend((layer, format_, cursor, first + int(self.timed.line[cursor - offset]), 0, 0))
                    is_open = True
                cursor = reached + offset
            if kind == CHOSE:
                if winner is None and (odd := _ODD_CHOICE.fullmatch(block, start + width, end)):
                    winner = int(odd[1]) & NONE
                    tables.odd_winners[len(rows) // STRIDE - is_open] = odd[1].decode()
                if winner is None:
                    break
                if not is_open:
                    extend((layer, format_, cursor, first + at, 0, 0))
                rows[-2], rows[-1] = winner, 1
                is_open, format_ = False, NONE
            elif STARS <= kind <= EQUALS:
                message = block[start + width : end]
                code, x, y = memo.get(message) or self.way.actions.compile(message, tables)
                if code == STARS:
                    layer, format_ = costs, x
                    extend((layer, format_, cursor, first + at, 0, 0))
                    is_open = True
                elif code == DASHES:
                    if y != runner:
                        tables.stretch.append(cursor)
                        tables.runner.append(y)
                        runner = y
                    if x != layer:
                        if is_open and rows[-4] == cursor:
                            rows[-6] = x
                        else:
                            is_open = False
                            format_ = NONE if layer != NONE else format_
                        costs = costs if x in (costs, IGNORED) else NONE
                        layer = x
                    if not is_open:
                        extend((layer, format_, cursor, first + at, 0, 0))
                        is_open = True
                elif code == EQUALS:
                    costs = layer = x
                    format_, is_open = NONE, False
                elif code == NOTHING:
                    layer, format_, is_open = IGNORED, NONE, False
                else:
                    break
            elif kind != FASTEST or layer == NONE:
                break
            index += 1
        tables.at, tables.open, tables.cursor = (costs, layer, format_), is_open, cursor
        if cursor - offset != moved or self.kinds[begun:index].count(FASTEST) < index - begun:
            tables.part()
        return index, cursor - offset, ignored
