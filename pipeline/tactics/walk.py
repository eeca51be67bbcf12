"""One block's lines of structure, in order: which layer and format combination each timed tactic belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from pipeline.tactics import stretch
from pipeline.tactics.actions import Actions
from pipeline.tactics.columns import Lines
from pipeline.tactics.tables import Tables
from pipeline.tactics.timed import CHOSE, DASHES, EQUALS, FASTEST, NOTHING, SLOW, STARS, TACTIC, Timed

TOGETHER_FROM = 150
"""Lines between two for the slow way from which taking them together is faster than one by one."""


class Way(Protocol):
    """What the walk asks of `FastWay`."""

    slow: Callable[[int, bytes, bool], None]
    tables: Callable[[], Tables | None]
    actions: Actions

    def move(self, tables: Tables, timed: Timed, since: int, keep: np.ndarray, first: int) -> None: ...


class Walk:
    """One block.

    Args:
        way: Who reads the lines for the slow way, and takes the timed tactics in.
        tables: The build's.
        block: The block of `lines`.
        lines: Its lines.
        kinds: uint8 [lines].
        timed: The block's timed tactics.
        first: Number of the first line in the file.
    """

    def __init__(self, way: Way, tables: Tables, block: bytes, lines: Lines, kinds: np.ndarray, timed: Timed, first: int) -> None:
        self.way, self.tables, self.block, self.lines, self.timed, self.first = way, tables, block, lines, timed, first
        self.at = np.flatnonzero((kinds != TACTIC) & (kinds != NOTHING))
        self.kinds = kinds[self.at]
        self.last = len(kinds)
        self.reached = np.append(timed.before(self.at), len(timed.line))
        self.start, self.end = lines.starts[self.at] + lines.width, lines.ends[self.at]
        chose = np.flatnonzero(self.kinds == CHOSE)
        ids, ok, odd = way.actions.choices(block, lines, self.at[chose])
        self.kinds[chose[~ok]] = SLOW
        self.ids = np.zeros(len(self.at), np.uint64)
        self.ids[chose] = ids
        self.odd = {int(chose[i]): text for i, text in odd.items()}
        """Index -> id of a choice as printed, where that is not `0x` and sixteen lower-case digits."""
        self.slow = np.append(np.flatnonzero(self.kinds == SLOW), len(self.at)).tolist()
        """Indices of the lines for the slow way, and the end."""
        self.together_from = TOGETHER_FROM
        self.index = self.moved = 0
        """How many of the lines and of the timed tactics were taken."""

    def run(self) -> int:
        """Take all lines; returns how many were read: fewer than all where a build ended, or where the rest must be looked at anew."""
        slow = iter(self.slow)
        stop = next(slow)
        while True:
            if self.way.tables() is not self.tables:
                return int(self.at[self.index - 1]) + 1
            self._take(stop)
            if self.index == len(self.at):
                return self.last
            if self.index == stop:
                stop = next(slow)
            index, at = self.index, int(self.at[self.index])
            alone = index + 1 >= len(self.at) or self.at[index + 1] > at + 1 or self.kinds[index + 1] != SLOW
            text = self.block[self.lines.starts[at] : self.lines.ends[at]]
            self.way.slow(self.first + at, text, bool(alone) and at + 1 < self.last)
            self.index += 1
            if self.tables.pending and self._named_before():
                return at + 1

    def _named_before(self) -> bool:
        """Whether the next timed tactic is without name, so that it may have the one that was read the slow way: no line between tells."""
        if self.moved == len(self.timed.line) or self.timed.end[self.moved]:
            return False
        told = self.at[self.index :][self.kinds[self.index :] != FASTEST]
        return bool(self.timed.line[self.moved] < (told[0] if len(told) else self.last))

    def _take(self, stop: int) -> None:
        """Go on up to line `stop`, or to one before it that turns out to be for the slow way."""
        begun, since = self.index, self.moved
        if stop - begun >= self.together_from:
            count, keep = self._together(stop)
            if count < self.together_from:  # where lines turn out to be for the slow way, more of them will
                self.together_from = len(self.at) + 1
        else:
            count, keep = self._one_by_one(stop)
        self.index += count
        self.moved += len(keep)
        self.way.move(self.tables, self.timed, since, keep, self.first)
        if len(keep) or (self.kinds[begun : self.index] != FASTEST).any():
            self.tables.part()

    def _together(self, stop: int) -> tuple[int, np.ndarray]:
        """Returns how many lines were taken, and which of the timed tactics before the next one belong to no reformat."""
        cut = slice(self.index, stop)
        kind, number, runner = self.kinds[cut].copy(), self.ids[cut].copy(), np.zeros(stop - self.index, np.uint64)
        told = np.flatnonzero((kind >= STARS) & (kind <= EQUALS))
        action = self.way.actions.of(self.block, self.lines, self.start[cut][told], self.end[cut][told])
        kind[told], number[told], runner[told] = action[:, 0], action[:, 1], action[:, 2]
        reached = np.append(self.moved, self.reached[self.index : stop + 1])
        odd = {i - self.index: text for i, text in self.odd.items() if self.index <= i < stop} if self.odd else {}
        events = stretch.Events(kind, number, runner, self.at[cut] + self.first, reached, odd)
        slow = np.flatnonzero(kind == SLOW)
        if len(slow):
            events = events.until(int(slow[0]))
        return stretch.take(self.tables, events, self.timed.line + self.first)

    def _one_by_one(self, stop: int) -> tuple[int, np.ndarray]:
        """The same by the tables' own methods."""
        tables, ignored = self.tables, []
        reached = self.moved
        for i in range(self.index, stop + 1):
            before, reached = reached, int(self.reached[i])
            if reached > before and tables.ignoring:
                ignored.append(slice(before - self.moved, reached - self.moved))
            elif reached > before:
                tables.advance(reached - before, self.first + int(self.timed.line[before]))
            if i == stop or not self._one(i):
                break
        keep = np.ones(reached - self.moved, bool)
        for part in ignored:
            keep[part] = False
        return i - self.index, keep

    def _one(self, i: int) -> bool:
        """Take one line; False where it is for the slow way."""
        tables, line = self.tables, self.first + int(self.at[i])
        kind: int = self.kinds[i]
        if kind == FASTEST:
            return not tables.nameless
        if kind == CHOSE:
            tables.chose(self.odd.get(i) or f"0x{self.ids[i]:016x}", line)
            return True
        kind, number, runner = self.way.actions.one(self.block[self.start[i] : self.end[i]])
        if kind == STARS:
            tables.combination(number, line)
        elif kind == DASHES:
            tables.timing_runner(number, runner, line)
        elif kind == EQUALS:
            tables.costs(number)
        elif kind == NOTHING:
            tables.reformat()
        return kind != SLOW
