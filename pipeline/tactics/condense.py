"""Each format combination in a few numbers: how many tactics of each class, the fastest of each, and the choice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from pipeline.tactics.tables import CHOSEN, LAYER, NONE, START, STRIDE, WINNER, Tables

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
    of_layer: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
    """By layer number: the three counts and the three fastest over all of its combinations."""
    row_of: Callable[[int], int] = lambda index: ABSENT
    """The combination of a timed tactic."""


def condense(tables: Tables) -> Condensed:
    """Condense all combinations of a build; both ways give the same."""
    return _with_numpy(tables) if tables.cursor >= VECTORISE_FROM else _plainly(tables)


def _plainly(tables: Tables) -> Condensed:
    order = {name: i for i, name in enumerate(CLASSES)}
    by_layer: dict[int, tuple[list[int], list[int]]] = {}
    counts: list[list[int]] = []
    best: list[list[int]] = []
    winners: list[int] = []
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
        layer = tables.rows[row * STRIDE + LAYER]
        known = by_layer.setdefault(layer, ([0, 0, 0], [ABSENT] * 3))
        _add(known, count, fastest, tables)
    return Condensed(counts, best, winners, dict(by_layer), _row_finder(tables))


def _add(known: tuple[list[int], list[int]], count: list[int], fastest: list[int], tables: Tables) -> None:
    for kind, index in enumerate(fastest):
        known[0][kind] += count[kind]
        before = known[1][kind]
        if index != ABSENT and (before == ABSENT or tables.ms[index] < tables.ms[before]):
            known[1][kind] = index


def _row_finder(tables: Tables) -> Callable[[int], int]:
    starts = tables.rows[START::STRIDE]
    return lambda index: bisect_right(starts, index) - 1


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
    layers, layer_of = np.unique(rows[:, LAYER], return_inverse=True)
    in_layer = layer_of[of]
    layer_counts = np.bincount(in_layer * len(CLASSES) + kinds, minlength=len(layers) * len(CLASSES)).reshape(-1, len(CLASSES))
    layer_best = np.stack([_fastest(ms, in_layer, kinds == kind, len(layers)) for kind in range(len(CLASSES))], axis=1)
    of_layer = dict(zip(layers.tolist(), zip(layer_counts.tolist(), layer_best.tolist())))
    return Condensed(counts.tolist(), best.tolist(), winner.tolist(), of_layer, _row_finder(tables))


def _fastest(ms: np.ndarray, of: np.ndarray, mask: np.ndarray, rows: int) -> np.ndarray:
    """By row, the index of the smallest time among the masked entries (the first of equals), or ABSENT."""
    import numpy as np

    at = np.flatnonzero(mask)
    found = np.full(rows, ABSENT, np.int64)
    if len(at):
        smallest = np.full(rows, np.inf)
        np.minimum.at(smallest, of[at], ms[at])
        hits = at[ms[at] == smallest[of[at]]][::-1]  # the last write wins: the first of equals
        found[of[hits]] = hits
    return found
