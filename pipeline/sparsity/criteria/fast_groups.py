"""One group of four of SparseGPT, compiled by numba for the CPU: the same arithmetic as the torch form, in one pass over rows."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def separate(weight: np.ndarray, own: np.ndarray, keep: np.ndarray, error: np.ndarray) -> None:
    """Each weight by itself: the arguments and results of `sparsegpt._separate`, `error` written."""
    scores = np.empty(4, weight.dtype)
    for r in range(weight.shape[1]):
        for i in range(4):
            scaled = weight[i, r] / own[i, i]
            scores[i] = scaled * scaled
        for i in range(4):
            beaten = 0
            for j in range(4):
                if scores[j] > scores[i] or (scores[j] == scores[i] and j < i):
                    beaten += 1
            keep[i, r] = beaten < 2
        for i in range(4):
            error[i, r] = 0
            if not keep[i, r]:
                lost = weight[i, r] / own[i, i]
                error[i, r] = lost
                for j in range(i + 1, 4):
                    weight[j, r] -= own[i, j] * lost
        for i in range(4):
            if not keep[i, r]:
                weight[i, r] = 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def joint(weight: np.ndarray, own: np.ndarray, pairs: np.ndarray, blocks: np.ndarray, keep: np.ndarray, error: np.ndarray) -> None:
    """The pair with the least error: as `sparsegpt._joint`; `blocks` [6, 2, 2] are the inverses of the pairs' blocks."""
    for r in range(weight.shape[1]):
        best = 0
        least = np.inf
        for s in range(6):
            a = weight[pairs[s, 0], r]
            b = weight[pairs[s, 1], r]
            cost = blocks[s, 0, 0] * a * a + (blocks[s, 0, 1] + blocks[s, 1, 0]) * a * b + blocks[s, 1, 1] * b * b
            if cost < least:
                least = cost
                best = s
        i, j = pairs[best, 0], pairs[best, 1]
        one = blocks[best, 0, 0] * weight[i, r] + blocks[best, 0, 1] * weight[j, r]
        other = blocks[best, 1, 0] * weight[i, r] + blocks[best, 1, 1] * weight[j, r]
        for k in range(4):
            keep[k, r] = k not in (i, j)
            error[k, r] = own[k, i] * one + own[k, j] * other
        for k in range(4):
            change = weight[k, r]
            for m in range(k + 1):
                change -= own[m, k] * error[m, r]
            weight[k, r] = change if keep[k, r] else 0
