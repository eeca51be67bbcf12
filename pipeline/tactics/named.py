"""Which kernel a name is: the numbers of kernels' names in one build's tables, looked up for all tactics of a block together."""

from __future__ import annotations

from functools import reduce

import numpy as np

from pipeline.tactics.columns import WINDOW, Lines
from pipeline.tactics.tables import Tables

NO_NAME, NOT_ONE, NEW = -1, -2, -3
"""No name or a damaged one; text of two lines in one, which is no name; not looked up yet."""
MAX_TOGETHER = 4096
"""Names that are looked up together; bounds their memory."""
MAX_NAMES = 200_000
_WORDS = WINDOW // 8
_ALL = np.uint64(0x0101010101010101)
_MIX = np.random.default_rng(0).integers(0, 1 << 64, _WORDS, np.uint64) | np.uint64(1)


class Kernels:
    """Kernels' numbers by name, for one build.

    A log of 600 MB has millions of names and a few hundred different ones. The names of a block are taken as rows of one
    array, found by a hash of the row and proven by comparing the rows; what is new or too long is looked up by itself.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.numbers: dict[bytes, int] = {}
        # one row per name, in order of the hashes
        self._hashes, self._sizes, self._numbers = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32)
        self._texts = np.empty((0, _WORDS), np.uint64)

    def number(self, name: bytes) -> int:
        """The number of one name, given on first use."""
        found = self.numbers.get(name)
        if found is None:
            if len(self.numbers) >= MAX_NAMES:
                self.numbers.clear()
            found = NOT_ONE if b" " in name else self.tables.kernel_number(name.decode("utf-8", "replace"))
            self.numbers[name] = found
        return found

    def of(self, block: bytes, lines: Lines, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The numbers of a block's names.

        Args:
            block: The block of `lines`.
            lines: Its lines.
            start: int64 [n], where each name begins in the block.
            end: int64 [n], where it ends, behind its beginning.

        Returns:
            int32 [n]: the kernels' numbers, NO_NAME or NOT_ONE.
        """
        size = end - start
        texts, whole = lines.texts(start, end)
        hashes = texts @ _MIX
        found = self._known(texts, size, hashes)
        found[~whole] = NEW
        new = np.flatnonzero(found == NEW)
        if len(new):
            names = [block[a:b] for a, b in zip(start[new].tolist(), end[new].tolist())]
            found[new] = [self.number(name) for name in names]
            kept = new[whole[new] & (found[new] >= 0)]
            self._learn(texts[kept], size[kept], hashes[kept], found[kept])
        return found

    def _known(self, texts: np.ndarray, sizes: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        """The numbers of names that came before."""
        if not len(self._hashes):
            return np.full(len(hashes), NEW, np.int32)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        same = texts == self._texts.take(at, 0)
        equal = (reduce(np.bitwise_and, same.view(np.uint64).T) == _ALL) & (self._sizes[at] == sizes)
        return np.where(equal, self._numbers[at], np.int32(NEW))

    def _learn(self, texts: np.ndarray, sizes: np.ndarray, hashes: np.ndarray, numbers: np.ndarray) -> None:
        if not len(hashes) or len(self._hashes) >= MAX_TOGETHER:
            return
        self._hashes, first = np.unique(np.append(self._hashes, hashes), return_index=True)
        self._texts = np.concatenate((self._texts, texts))[first]
        self._sizes = np.append(self._sizes, sizes)[first]
        self._numbers = np.append(self._numbers, numbers)[first]
