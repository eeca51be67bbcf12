"""Numbers for texts that come again and again, looked up for all of a block's texts together.

A log of 600 MB has millions of kernels' names and runners' lines, and a few hundred different ones. The texts of a block
are taken as rows of one array, found by a hash of the row and proven by comparing the rows; what is new or too long is
looked up by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.tactics.columns import WINDOW, Lines
from pipeline.tactics.words import odd_factors

NEW = -1 << 31
"""Not looked up yet."""
MAX_TOGETHER = 2048
"""Texts that are looked up together: beyond, those of the last block are kept and the others looked up anew."""
ROWS_TOGETHER = 4096
"""Texts that are looked at in one go."""
_WORDS = WINDOW // 8
_HASH_BITS = 16
_HASH_SHIFT = np.uint64(64 - _HASH_BITS)
_MIX = odd_factors(_WORDS)


class Lookup:
    """Numbers by text.

    Args:
        give: The number of a text that is new; a negative one, above `NEW`, says what is wrong with the text.
        last: Behind a text with this number no new one of the block is looked at: theirs is the same.
    """

    def __init__(self, give: Callable[[bytes], int], last: int | None = None) -> None:
        self._give, self._last = give, last
        self.numbers: dict[bytes, int] = {}
        # one row per text, the first of them for texts that are not known
        self._texts, self._sizes, self._numbers = np.zeros((1, _WORDS), np.uint64), np.full(1, -1), np.full(1, NEW, np.int32)
        self._row = np.zeros(1 << _HASH_BITS, np.int16)
        """By hash; of texts with the same one the last."""

    def number(self, text: bytes) -> int:
        """The number of one text, given on first use."""
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = self._give(text)
        return found

    def of(self, block: bytes, lines: Lines, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The numbers of a block's texts.

        Args:
            block: The block of `lines`.
            lines: Its lines.
            start: int64 [n], where each text begins in the block.
            end: int64 [n], where it ends, behind its beginning.

        Returns:
            int32 [n].
        """
        found = np.full(len(start), NEW if self._last is None else self._last, np.int32)
        for at in range(0, len(start), ROWS_TOGETHER):
            some = slice(at, at + ROWS_TOGETHER)
            found[some] = self._of(block, lines, start[some], end[some])
            if self._last is not None and (found[some] == self._last).any():
                break
        return found

    def _of(self, block: bytes, lines: Lines, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Some at a time, which stay in a core's own cache meanwhile."""
        texts, whole = lines.texts(start, end)
        size, hashes = end - start, (texts @ _MIX[_WORDS - texts.shape[1] :] >> _HASH_SHIFT).astype(np.intp)
        found = np.where(whole, self._known(texts, size, hashes), np.int32(NEW))
        new = np.flatnonzero(found == NEW)
        if not len(new):
            return found
        first = new[np.unique(hashes[new], return_index=True)[1]]
        alone = np.unique(np.append(first, new[~whole[new]]))
        self._number(found, alone, block, start, end)
        told = alone[whole[alone] & (found[alone] >= 0)][:MAX_TOGETHER]
        self._learn(texts[told], size[told], hashes[told], found[told])
        again = np.flatnonzero(found == NEW)
        found[again] = self._known(texts[again], size[again], hashes[again])
        self._number(found, np.flatnonzero(found == NEW), block, start, end)
        return found

    def _number(self, found: np.ndarray, at: np.ndarray, block: bytes, start: np.ndarray, end: np.ndarray) -> None:
        """Fill in the numbers of the texts at some places, in order and each by itself."""
        for i, a, b in zip(at.tolist(), start[at].tolist(), end[at].tolist()):
            found[i] = number = self.number(block[a:b])
            if number == self._last:
                behind = found[i:]
                behind[behind == NEW] = number
                return

    def _known(self, texts: np.ndarray, sizes: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        """The numbers of texts that came before; NEW for the others."""
        at = self._row[hashes]
        width = texts.shape[1]
        found: np.ndarray = self._numbers[at]
        found[self._sizes[at] != sizes] = NEW
        found[np.flatnonzero(texts != self._texts[:, _WORDS - width :].take(at, 0)) // width] = NEW
        return found

    def _learn(self, texts: np.ndarray, sizes: np.ndarray, hashes: np.ndarray, numbers: np.ndarray) -> None:
        """Keep new rows, of different hashes."""
        if len(self._numbers) + len(numbers) > MAX_TOGETHER:
            self._texts, self._sizes, self._numbers = self._texts[:1], self._sizes[:1], self._numbers[:1]
            self._row[:] = 0
        self._row[hashes] = len(self._numbers) + np.arange(len(hashes))
        self._texts = np.concatenate((self._texts, np.pad(texts, ((0, 0), (_WORDS - texts.shape[1], 0)))))
        self._sizes, self._numbers = np.append(self._sizes, sizes), np.append(self._numbers, numbers)
