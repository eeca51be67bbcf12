"""Each format combination in a few numbers: the fastest tactic of each class, and the choice; and the same by layer."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from pipeline.tactics.combinations import CHOSEN, LAYER, NONE, START, STRIDE, WINNER, Combinations

if TYPE_CHECKING:
    import numpy as np

CLASSES = ("sparse", "dense", "unknown")
ABSENT = -1
VECTORISE_FROM = 20_000
"""Timed tactics from which importing numpy (80 ms) is repaid."""
ROWS_AT_ONCE = 5_000
"""Bounds the memory of the vectorised way."""


class Condensed(msgspec.Struct):
    """Indices of timed tactics; ABSENT where there is none: no tactic of a class, or a choice whose timing line is missing."""

    best: array[int]
    """The fastest of each class: entry `row * len(CLASSES) + class`."""
    winner: array[int]
    """The choice, by combination row."""
    counts: dict[int, list[int]]
    """Layer number -> timed tactics by class, over all of its combinations."""
    fastest: dict[int, list[int]]
    """Layer number -> the fastest of each class, over all of its combinations."""
    starts: array[int]
    """First tactic of each combination row."""
    partly_seen: set[int] = set()
    """Layers that may have been timed with more tactics."""

    def row_of(self, index: int) -> int:
        """The combination of a timed tactic."""
        return bisect_right(self.starts, index) - 1

    @property
    def any_sparse(self) -> bool:
        """Whether a sparse tactic was timed at all."""
        return any(counts[CLASSES.index("sparse")] for counts in self.counts.values())

    def untimed_choices(self, tables: Combinations) -> set[int]:
        """Layers with a combination that has timed tactics but not the one that it chose: their lines are missing."""
        rows = (row for row, index in enumerate(self.winner) if index == ABSENT) if ABSENT in self.winner else ()
        return {tables.rows[row * STRIDE + LAYER] for row in rows if tables.chosen(row) and len(tables.span(row))}

    def best_of(self, row: int, kind: int) -> int:
        """The fastest tactic of one class in one combination."""
        return self.best[row * len(CLASSES) + kind]


def condense(tables: Combinations) -> Condensed:
    """Condense all combinations of a build; both ways give the same."""
    return with_numpy(tables) if tables.cursor >= VECTORISE_FROM else plainly(tables)


def plainly(tables: Combinations) -> Condensed:
    """In plain Python: for small logs."""
    order = {name: i for i, name in enumerate(CLASSES)}
    found = Condensed(array("i"), array("i"), {}, {}, tables.rows[START::STRIDE])
    for row in range(len(tables)):
        layer = tables.rows[row * STRIDE + LAYER]
        counts = found.counts.setdefault(layer, [0] * len(CLASSES))
        fastest = found.fastest.setdefault(layer, [ABSENT] * len(CLASSES))
        best, winner = [ABSENT] * len(CLASSES), ABSENT
        wanted = tables.rows[row * STRIDE + WINNER] if tables.chosen(row) else None
        for i in tables.span(row):
            kind = order[tables.class_at(i)]
            counts[kind] += 1
            best[kind] = _faster(tables, best[kind], i)
            if tables.id[i] == wanted:
                winner = _faster(tables, winner, i)
        for kind, index in enumerate(best):
            fastest[kind] = _faster(tables, fastest[kind], index)
        found.best.extend(best)
        found.winner.append(winner)
    return found


def _faster(tables: Combinations, a: int, b: int) -> int:
    """The faster of two tactics, the first of equals; either may be ABSENT."""
    if a == ABSENT or b == ABSENT:
        return max(a, b)
    return b if tables.ms[b] < tables.ms[a] else a


def with_numpy(tables: Combinations) -> Condensed:
    """With numpy, some thousand combinations at a time."""
    import numpy as np

    rows = np.frombuffer(tables.rows, np.uint64).reshape(-1, STRIDE)
    starts = np.append(rows[:, START].astype(np.int64), tables.cursor)
    counts = np.zeros((len(rows), len(CLASSES)), np.int64)
    best, winner = array("i"), array("i")
    for first in range(0, len(rows), ROWS_AT_ONCE):
        last = min(len(rows), first + ROWS_AT_ONCE)
        some = _Some(tables, rows[first:last], starts[first : last + 1])
        counts[first:last] = some.counts()
        best.frombytes(np.stack([some.fastest(some.kinds == kind) for kind in range(len(CLASSES))], axis=1).astype(np.int32).tobytes())
        winner.frombytes(some.winners().astype(np.int32).tobytes())
    layers, layer_of = np.unique(rows[:, LAYER], return_inverse=True)
    by_layer = np.stack([np.bincount(layer_of, weights=counts[:, kind], minlength=len(layers)) for kind in range(len(CLASSES))], axis=1)
    indices = np.frombuffer(best, np.int32).reshape(-1, len(CLASSES))
    ms = np.frombuffer(tables.ms, np.float64)
    fastest = np.full((len(layers), len(CLASSES)), ABSENT, np.int64)
    for kind in range(len(CLASSES)):
        at = np.flatnonzero(indices[:, kind] != ABSENT)
        where = first_smallest(ms[indices[at, kind]], layer_of[at], len(layers))
        known = where != ABSENT
        fastest[known, kind] = indices[at[where[known]], kind]
    names = layers.tolist()
    return Condensed(
        best,
        winner,
        dict(zip(names, by_layer.astype(np.int64).tolist())),
        dict(zip(names, fastest.tolist())),
        tables.rows[START::STRIDE],
    )


class _Some:
    """A stretch of combinations, and the columns of their timed tactics."""

    def __init__(self, tables: Combinations, rows: np.ndarray, starts: np.ndarray) -> None:
        import numpy as np

        self.rows, self.offset = rows, int(starts[0])
        cut = slice(int(starts[0]), int(starts[-1]))
        self.of = np.repeat(np.arange(len(rows)), np.diff(starts))
        self.ms = np.frombuffer(tables.ms, np.float64)[cut]
        self.id = np.frombuffer(tables.id, np.uint64)[cut]
        codes = np.array([*(CLASSES.index(name) for name in tables.classes), CLASSES.index("unknown")], np.int8)
        self.kinds = codes[np.frombuffer(tables.kernel, np.int32)[cut]]

    def counts(self) -> np.ndarray:
        """Timed tactics by row and class."""
        import numpy as np

        size = len(self.rows) * len(CLASSES)
        return np.bincount(self.of * len(CLASSES) + self.kinds, minlength=size).reshape(-1, len(CLASSES))

    def fastest(self, mask: np.ndarray) -> np.ndarray:
        """By row, the fastest of the masked tactics."""
        import numpy as np

        at = np.flatnonzero(mask)
        where = first_smallest(self.ms[at], self.of[at], len(self.rows))
        found = np.full(len(self.rows), ABSENT, np.int64)
        known = where != ABSENT
        found[known] = at[where[known]] + self.offset
        return found

    def winners(self) -> np.ndarray:
        """By row, the timed tactic that was chosen."""
        import numpy as np

        chosen = self.rows[:, CHOSEN] != 0
        wanted = np.where(chosen, self.rows[:, WINNER], NONE)
        found = self.fastest(self.id == wanted[self.of])
        found[~chosen] = ABSENT
        return found


def first_smallest(values: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """By group, the position of the smallest value, the first of equals; ABSENT for an empty group."""
    import numpy as np

    found = np.full(groups, ABSENT, np.int64)
    if len(values):
        smallest = np.full(groups, np.inf)
        np.minimum.at(smallest, group, values)
        hits = np.flatnonzero(values == smallest[group])[::-1]  # the last write wins
        found[group[hits]] = hits
    return found
