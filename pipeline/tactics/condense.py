"""Each format combination in a few numbers: how many tactics of each class, the fastest of each, and the choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from pipeline.tactics.tables import CHOSEN, NONE, START, STRIDE, WINNER, Tables

if TYPE_CHECKING:
    import numpy as np

CLASSES = ("sparse", "dense", "unknown")
ABSENT = -1
VECTORISE_FROM = 20_000
"""Timed tactics from which importing numpy (80 ms) is repaid."""


class Condensed(msgspec.Struct):
    """By combination row: three counts, three indices of the fastest timed tactic by class, and the index of the choice.

    An index is ABSENT where there is none: no tactic of that class, or a choice whose timing line is missing.
    """

    counts: Sequence[Sequence[int]]
    best: Sequence[Sequence[int]]
    winner: Sequence[int]


def condense(tables: Tables) -> Condensed:
    """Condense all combinations of a build; both ways give the same."""
    return _with_numpy(tables) if tables.cursor >= VECTORISE_FROM else _plainly(tables)


def _plainly(tables: Tables) -> Condensed:
    order = {name: i for i, name in enumerate(CLASSES)}
    found = Condensed([], [], [])
    counts, best, winners = [], [], []
    for row in range(len(tables)):
        count, fastest, winner = [0, 0, 0], [ABSENT] * 3, ABSENT
        wanted = tables.rows[row * STRIDE + WINNER] if tables.chosen(row) else None
        for i in tables.span(row):
            kind = order[tables.class_at(i)]
            count[kind] += 1
            if fastest[kind] == ABSENT or tables.ms[i] < tables.ms[fastest[kind]]:
                fastest[kind] = i
            if tables.id[i] == wanted and (winner == ABSENT or tables.ms[i] < tables.ms[winner]):
                winner = i
        counts.append(count)
        best.append(fastest)
        winners.append(winner)
    found.counts, found.best, found.winner = counts, best, winners
    return found


def _with_numpy(tables: Tables) -> Condensed:
    import numpy as np

    rows = np.frombuffer(tables.rows, np.uint64).reshape(-1, STRIDE)
    total = tables.cursor
    starts = rows[:, START].astype(np.int64)
    sizes = np.diff(starts, append=total)
    of = np.repeat(np.arange(len(rows)), sizes)
    ms = np.frombuffer(tables.ms, np.float64)[:total]
    kernel = np.frombuffer(tables.kernel, np.int32)[:total]
    codes = np.array([CLASSES.index(name) for name in tables.classes] + [CLASSES.index("unknown")], np.int8)
    kinds = codes[kernel]
    counts = np.bincount(of * len(CLASSES) + kinds, minlength=len(rows) * len(CLASSES)).reshape(-1, len(CLASSES))
    best = np.stack([_fastest(ms, of, kinds == kind, len(rows)) for kind in range(len(CLASSES))], axis=1)
    wanted = np.where(rows[:, CHOSEN] != 0, rows[:, WINNER], NONE)
    winner = _fastest(ms, of, np.frombuffer(tables.id, np.uint64)[:total] == wanted[of], len(rows))
    winner[rows[:, CHOSEN] == 0] = ABSENT
    return Condensed(counts.tolist(), best.tolist(), winner.tolist())


def _fastest(ms: np.ndarray, of: np.ndarray, mask: np.ndarray, rows: int) -> np.ndarray:
    """By row, the index of the smallest time among the masked entries (the first of equals), or ABSENT."""
    import numpy as np

    at = np.flatnonzero(mask)
    found = np.full(rows, ABSENT, np.int64)
    order = np.lexsort((-at, -ms[at]))  # the last write wins: slowest first, and the first of equals last
    found[of[at[order]]] = at[order]
    return found
