"""Which kernel a name is: the numbers of kernels' names in one build's tables, looked up for all tactics of a block together."""

from __future__ import annotations

from functools import reduce

import numpy as np

from pipeline.tactics.columns import Lines
from pipeline.tactics.tables import Tables

NO_NAME, NOT_ONE, NEW = -1, -2, -3
"""No name or a damaged one; text of two lines in one, which is no name; not looked up yet."""
WINDOW = 192
"""Bytes of the longest name that is proven together with others."""
MAX_IDS = 4096
MAX_NAMES = 200_000
_ALL = np.uint64(0x0101010101010101)


class Kernels:
    """Kernels' numbers by name, for one build.

    A tactic's id stands for a kernel, so a name is sought by its tactic's id and then proven byte by byte, those of a block
    in one go. A name that is new, too long, or not the first of its id is looked up by itself.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.numbers: dict[bytes, int] = {}
        # one row per id, in order of the ids
        self._ids, self._sizes, self._numbers = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32)
        self._texts = self._masks = np.empty((0, WINDOW // 8), np.uint64)

    def number(self, name: bytes) -> int:
        """The number of one name, given on first use."""
        found = self.numbers.get(name)
        if found is None:
            if len(self.numbers) >= MAX_NAMES:
                self.numbers.clear()
            found = NOT_ONE if b" " in name else self.tables.kernel_number(name.decode("utf-8", "replace"))
            self.numbers[name] = found
        return found

    def of(self, block: bytes, lines: Lines, start: np.ndarray, end: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """The numbers of a block's names.

        Args:
            block: The block of `lines`.
            lines: Its lines.
            start: int64 [n], where each name begins in the block; equal to its end where there is none.
            end: int64 [n], where it ends.
            ids: uint64 [n], the tactics' ids.

        Returns:
            int32 [n]: the kernels' numbers, NO_NAME or NOT_ONE.
        """
        found = np.where(start == end, np.int32(NO_NAME), self._proven(lines, start, end, ids))
        new = np.flatnonzero(found == NEW)
        if len(new):
            names = [block[a:b] for a, b in zip(start[new].tolist(), end[new].tolist())]
            found[new] = [self.number(name) for name in names]
            self._learn(names, ids[new], found[new])
        return found

    def _proven(self, lines: Lines, start: np.ndarray, end: np.ndarray, ids: np.ndarray) -> np.ndarray:
        if not len(self._ids):
            return np.full(len(ids), NEW, np.int32)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        same = (lines.windows(end, WINDOW) & self._masks.take(at, 0)) == self._texts.take(at, 0)
        proven = reduce(np.bitwise_and, same.view(np.uint64).T) == _ALL
        proven &= (self._ids[at] == ids) & (self._sizes[at] == end - start)
        return np.where(proven, self._numbers[at], np.int32(NEW))

    def _learn(self, names: list[bytes], ids: np.ndarray, numbers: np.ndarray) -> None:
        known = set(self._ids.tolist())
        rows: dict[int, tuple[bytes, int]] = {}
        for name, id_, number in zip(names, ids.tolist(), numbers.tolist()):
            if len(known) + len(rows) >= MAX_IDS:
                break
            if number >= 0 and len(name) <= WINDOW and id_ not in known:
                rows.setdefault(id_, (name, number))
        if not rows:
            return
        texts = np.frombuffer(b"".join(name.rjust(WINDOW, b"\0") for name, _ in rows.values()), np.uint64).reshape(-1, WINDOW // 8)
        masks = np.frombuffer(b"".join((b"\xff" * len(name)).rjust(WINDOW, b"\0") for name, _ in rows.values()), np.uint64)
        ids = np.append(self._ids, np.array(list(rows), np.uint64))
        order = np.argsort(ids)
        self._ids = ids[order]
        self._sizes = np.append(self._sizes, [len(name) for name, _ in rows.values()])[order]
        self._numbers = np.append(self._numbers, np.array([number for _, number in rows.values()], np.int32))[order]
        self._texts = np.concatenate((self._texts, texts))[order]
        self._masks = np.concatenate((self._masks, masks.reshape(texts.shape)))[order]
