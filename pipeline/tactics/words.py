"""Eight bytes of a block as one number: the arithmetic by which many lines are looked at together."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

PAD = bytes(512)
CHUNK_BYTES = 1 << 18
"""So much is looked at in one go, and stays in a core's own cache meanwhile."""
_DRAW = random.Random(0)


def word(text: bytes) -> np.uint64:
    """Up to eight bytes as one little-endian number."""
    return np.uint64(int.from_bytes(text, "little"))


def odd_factors(count: int) -> np.ndarray:
    """uint64 [count]: numbers whose products with words have mixed upper bits; the same in every run."""
    return np.array([_DRAW.getrandbits(64) | 1 for _ in range(count)], np.uint64)


_PLACE_OF_ONE = word(bytes(range(7, -1, -1)))
"""Times one set flag of eight: the place of the flag in the topmost byte."""


class Keys:
    """Small numbers by key of eight bytes; a key's slot is the top bits of its product with a factor that parts the keys."""

    def __init__(self, values: Mapping[bytes, int]) -> None:
        keys = np.array([word(key) for key in values], np.uint64)
        self._shift, self._factor = np.uint64(64 - 2 * len(values).bit_length()), np.uint64(1)
        while len(np.unique(self._slot(keys))) < len(keys):
            (self._factor,) = odd_factors(1)
        slots = 1 << (64 - int(self._shift))
        self._keys, self._values = np.zeros(slots, np.uint64), np.zeros(slots, np.uint8)
        self._keys[self._slot(keys)], self._values[self._slot(keys)] = keys, list(values.values())

    def _slot(self, words: np.ndarray) -> np.ndarray:
        return (words * self._factor) >> self._shift

    def of(self, words: np.ndarray) -> np.ndarray:
        """uint8 [n]: the values of uint64 words [n]; 0 of one that is no key."""
        slot = self._slot(words)
        found: np.ndarray = self._values[slot] * (self._keys[slot] == words)
        return found


class Scratch:
    """Memory for one block at a time, used again: freshly mapped pages for every block would cost a fifth of the whole reading."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._flags = np.empty(CHUNK_BYTES, bool)
        self.bytes = self._memory
        """The block, with `PAD` behind it."""

    def hold(self, block: bytes) -> Scratch:
        """Take in another block."""
        size = len(block)
        if size + len(PAD) > len(self._memory):
            self._memory = np.empty(size + size // 4 + len(PAD), np.uint8)
        self.bytes = self._memory[: size + len(PAD)]
        self.bytes[:size] = np.frombuffer(block, np.uint8)
        self.bytes[size:] = 0
        return self

    def controls(self, begin: int, end: int) -> np.ndarray:
        """Where in a part of the block control characters are: line feeds, and hardly ever another."""
        found = []
        for at in range(begin, end, CHUNK_BYTES):
            chunk = self.bytes[at : min(at + CHUNK_BYTES, end)]
            found.append(places(np.less(chunk, ord(" "), out=self._flags[: len(chunk)])) + at)
        return np.concatenate(found)


def places(flags: np.ndarray) -> np.ndarray:
    """Indices of the set flags: eight looked at together, since they are few."""
    whole = len(flags) // 8 * 8
    eights = flags[:whole].view(np.uint64)
    at = np.flatnonzero(eights != 0)
    one = eights[at]
    if (one & (one - np.uint64(1))).any():  # two among eight
        return np.flatnonzero(flags)
    place = ((one * _PLACE_OF_ONE) >> np.uint64(56)).astype(np.int64)
    return np.concatenate((at * 8 + place, np.flatnonzero(flags[whole:]) + whole))
