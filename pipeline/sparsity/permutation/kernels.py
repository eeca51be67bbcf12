"""The inner loops of the permutation search, compiled by numba for one CPU core.

A matrix lies here as [columns, rows] float32, so that a column is contiguous and loops over rows vectorise. A stripe is
four columns that form one 2:4 group; what a stripe keeps is the sum, over rows, of its two largest magnitudes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 64
"""Rows per block: 28 pairs x 2 x 64 x 4 bytes stay in the first-level cache."""


@njit(cache=True, fastmath=True, nogil=True)  # type: ignore[untyped-decorator]
def part_scores(data: np.ndarray, columns: np.ndarray, pairs: np.ndarray, parts: np.ndarray, out: np.ndarray) -> None:
    """What each of the 35 partings of 8 columns keeps, into out [35] float64."""
    rows = data.shape[1]
    high = np.empty((28, BLOCK), dtype=np.float32)
    low = np.empty((28, BLOCK), dtype=np.float32)
    out[:] = 0.0
    for start in range(0, rows, BLOCK):
        size = min(BLOCK, rows - start)
        for p in range(28):
            a = data[columns[pairs[p, 0]], start : start + size]
            b = data[columns[pairs[p, 1]], start : start + size]
            hp = high[p]
            lp = low[p]
            for r in range(size):
                hp[r] = a[r] if a[r] > b[r] else b[r]
                lp[r] = b[r] if a[r] > b[r] else a[r]
        for k in range(35):
            h0 = high[parts[k, 0]]
            h1 = high[parts[k, 1]]
            l0 = low[parts[k, 0]]
            l1 = low[parts[k, 1]]
            h2 = high[parts[k, 2]]
            h3 = high[parts[k, 3]]
            l2 = low[parts[k, 2]]
            l3 = low[parts[k, 3]]
            total = np.float32(0.0)
            for r in range(size):
                top = h0[r] if h0[r] > h1[r] else h1[r]
                least = h1[r] if h0[r] > h1[r] else h0[r]
                lows = l0[r] if l0[r] > l1[r] else l1[r]
                second = least if least > lows else lows
                top2 = h2[r] if h2[r] > h3[r] else h3[r]
                least2 = h3[r] if h2[r] > h3[r] else h2[r]
                lows2 = l2[r] if l2[r] > l3[r] else l3[r]
                second2 = least2 if least2 > lows2 else lows2
                total += top + second + top2 + second2
            out[k] += total


@njit(cache=True, fastmath=True, nogil=True)  # type: ignore[untyped-decorator]
def kept(data: np.ndarray, a: int, b: int, c: int, d: int) -> float:
    """What the stripe of four columns keeps."""
    one = data[a]
    two = data[b]
    three = data[c]
    four = data[d]
    total = np.float32(0.0)
    for r in range(data.shape[1]):
        high = max(one[r], two[r])
        low = min(one[r], two[r])
        high2 = max(three[r], four[r])
        low2 = min(three[r], four[r])
        total += max(high, high2) + max(min(high, high2), low, low2)
    return total  # type: ignore[return-value]  # a float to numba


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def all_kept(data: np.ndarray, order: np.ndarray, out: np.ndarray) -> None:
    """What each stripe of an order keeps, into out [stripes]."""
    for s in range(out.size):
        out[s] = kept(data, order[4 * s], order[4 * s + 1], order[4 * s + 2], order[4 * s + 3])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mean_change(data: np.ndarray, order: np.ndarray, now: np.ndarray, seed: int, moves: int) -> float:
    """Mean absolute change that a random swap of two columns would make: the natural unit of temperature."""
    np.random.seed(seed)
    total = 0.0
    one = np.empty(4, np.int64)
    two = np.empty(4, np.int64)
    for _ in range(moves):
        i, j = _two_stripes(now.size)
        _swapped(order, i, j, one, two)
        after = kept(data, one[0], one[1], one[2], one[3]) + kept(data, two[0], two[1], two[2], two[3])
        total += abs(after - now[i] - now[j])
    return total / moves


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _two_stripes(stripes: int) -> tuple[int, int]:
    i = np.random.randint(stripes)
    j = np.random.randint(stripes - 1)
    return i, j + 1 if j >= i else j


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _swapped(order: np.ndarray, i: int, j: int, one: np.ndarray, two: np.ndarray) -> None:
    a = np.random.randint(4)
    b = np.random.randint(4)
    for k in range(4):
        one[k] = order[4 * i + k]
        two[k] = order[4 * j + k]
    held = one[a]
    one[a] = two[b]
    two[b] = held


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def anneal(
    data: np.ndarray, order: np.ndarray, now: np.ndarray, window: np.ndarray, seed: int, moves: int, first: float, last: float
) -> None:
    """Swap random columns, worse ones with probability exp(change / temperature), the temperature falling geometrically.

    Only the stripes of `window` take part, so that their columns stay in the processor's cache.
    """
    np.random.seed(seed)
    one = np.empty(4, np.int64)
    two = np.empty(4, np.int64)
    temperature = first
    factor = (last / first) ** (1.0 / moves)
    stripes = np.uint64(window.size)
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    for _ in range(moves):
        temperature *= factor
        # xorshift64 (Marsaglia 2003): one draw for both stripes and both columns, several times as fast as numpy's
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        a = np.int64(((state >> np.uint64(40)) * stripes) >> np.uint64(24))
        b = np.int64((((state >> np.uint64(16)) & np.uint64(0xFFFFFF)) * (stripes - np.uint64(1))) >> np.uint64(24))
        if b >= a:
            b += 1
        i = window[a]
        j = window[b]
        p = np.int64((state >> np.uint64(4)) & np.uint64(3))
        q = np.int64((state >> np.uint64(8)) & np.uint64(3))
        for k in range(4):
            one[k] = order[4 * i + k]
            two[k] = order[4 * j + k]
        held = one[p]
        one[p] = two[q]
        two[q] = held
        ours = kept(data, one[0], one[1], one[2], one[3])
        theirs = kept(data, two[0], two[1], two[2], two[3])
        change = ours + theirs - now[i] - now[j]
        if change >= 0 or np.random.random() < np.exp(change / temperature):
            now[i] = ours
            now[j] = theirs
            for k in range(4):
                order[4 * i + k] = one[k]
                order[4 * j + k] = two[k]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def improve(
    data: np.ndarray,
    order: np.ndarray,
    now: np.ndarray,
    seen: np.ndarray,
    changed: np.ndarray,
    clock: int,
    start: int,
    limit: int,
    pairs: np.ndarray,
    parts: np.ndarray,
    part_pairs: np.ndarray,
) -> tuple[int, int, int, bool]:
    """Two-stripe greedy: for each pair of stripes take the best of their 35 partings, until no pair has a better one.

    Pairs of which neither stripe has changed since they were seen are skipped. Stops after `limit` evaluations.

    Args:
        data: [columns, rows].
        order: [columns], changed in place.
        now: [stripes], what each keeps; changed in place.
        seen: [stripes, stripes], when a pair was last looked at.
        changed: [stripes], when a stripe last changed.
        clock: The present time of `seen` and `changed`.
        start: The first stripe to go on with.
        limit: Most evaluations of a pair.
        pairs: The table PAIRS.
        parts: The table PARTS.
        part_pairs: The table PART_PAIRS.

    Returns:
        The clock, the evaluations made, the stripe to go on with, and whether no pair is left to improve.
    """
    stripes = now.size
    columns = np.empty(8, np.int64)
    scores = np.empty(35, np.float64)
    made = 0
    quiet = 0  # stripes in a row that had nothing to improve
    i = start
    while quiet < stripes:
        better = False
        for j in range(stripes):
            a, b = min(i, j), max(i, j)
            if i == j or (seen[a, b] >= changed[a] and seen[a, b] >= changed[b]):
                continue
            for k in range(4):
                columns[k] = order[4 * a + k]
                columns[4 + k] = order[4 * b + k]
            part_scores(data, columns, pairs, part_pairs, scores)
            made += 1
            clock += 1
            seen[a, b] = clock
            best = np.argmax(scores)
            if scores[best] > scores[0] * (1 + 1e-6):
                for k in range(4):
                    order[4 * a + k] = columns[parts[best, k]]
                    order[4 * b + k] = columns[parts[best, 4 + k]]
                now[a] = kept(data, order[4 * a], order[4 * a + 1], order[4 * a + 2], order[4 * a + 3])
                now[b] = kept(data, order[4 * b], order[4 * b + 1], order[4 * b + 2], order[4 * b + 3])
                changed[a] = clock
                changed[b] = clock
                better = True
            if made >= limit:
                return clock, made, i, False
        quiet = 0 if better else quiet + 1
        i = (i + 1) % stripes
    return clock, made, i, True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def kick(data: np.ndarray, order: np.ndarray, now: np.ndarray, changed: np.ndarray, clock: int, seed: int) -> int:
    """Rotate three random columns of three random stripes, whatever it costs: the way out of a local optimum.

    No single pair of stripes can undo it. Returns the clock.
    """
    np.random.seed(seed)
    i, j = _two_stripes(now.size)
    k = i
    while k in (i, j):
        k = np.random.randint(now.size)
    a = 4 * i + np.random.randint(4)
    b = 4 * j + np.random.randint(4)
    c = 4 * k + np.random.randint(4)
    held = order[a]
    order[a] = order[b]
    order[b] = order[c]
    order[c] = held
    clock += 1
    for s in (i, j, k):
        changed[s] = clock
        now[s] = kept(data, order[4 * s], order[4 * s + 1], order[4 * s + 2], order[4 * s + 3])
    return clock
