"""Searching an order of columns under which 2:4 keeps more magnitude: two-stripe exhaustive greedy with escapes.

Pool and Yu, "Channel Permutations for N:M Sparsity", NeurIPS 2021, for the problem and the two-stripe move. Small problems
are improved to a local optimum and escape from it by kicks (iterated local search); where the time does not suffice to look
at all pairs of stripes many times over, single columns are swapped by simulated annealing, and greedy finishes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from pipeline.sparsity.permutation.tables import PAIRS, PART_PAIRS, PARTS

GROUP = 4
ROUNDS = 40
"""Time to look at all pairs so often: then escapes by kicks do better than annealing."""
HOT, COLD = 0.2, 0.05
"""First and last temperature of the annealing, in mean changes of a random swap."""
CACHED = 1 << 17
"""Numbers (512 KiB) that stay in a core's second-level cache: the columns of the stripes that are annealed together."""
VISIT = 8
"""Moves per column before other stripes are drawn."""
LEAST_STRIPES = 3
"""A kick rotates columns of so many stripes."""
SWAP_NS = (80.0, 0.5)
"""Nominal time of one swap of the annealing: constant and per row. The work follows from these and not from the clock, so
that the same seed finds the same order on every machine that is fast enough."""
PAIR_NS = (700.0, 22.0)
"""Nominal time of one pair of stripes: constant and per row."""


@dataclass(frozen=True)
class Found:
    """An order of columns and what it is worth."""

    order: np.ndarray
    """int64 [columns]: position i holds column order[i]."""
    kept_before: float
    """Magnitude that 2:4 keeps in the given order."""
    kept: float
    """Magnitude that 2:4 keeps in this order."""
    unstructured: float
    """Magnitude that the larger half of all weights has: what no order can exceed."""
    seconds: float
    complete: bool
    """False where the time was over before the nominal work was done."""

    @property
    def regained(self) -> float:
        """Share of the magnitude that 2:4 loses against unstructured 50 % which the order regains."""
        lost = self.unstructured - self.kept_before
        return (self.kept - self.kept_before) / lost if lost > 0 else 0.0


def search(matrix: np.ndarray, *, seconds: float, seed: int = 0, limit: float | None = None) -> Found:
    """Search on one CPU core.

    Args:
        matrix: [rows, columns], any sign; columns a multiple of 4. NaN is not allowed.
        seconds: Time to spend, compilation aside (about 10 s of one core once per machine, then cached).
        seed: Of the escapes.
        limit: Wall-clock seconds after which the search stops short of its nominal work; `seconds` when absent.
    """
    data = np.ascontiguousarray(np.abs(matrix).T, dtype=np.float32)
    columns = data.shape[0]
    start = time.perf_counter()
    order = np.arange(columns, dtype=np.int64)
    complete = True
    if columns > GROUP and data.size and data.any() and seconds > 0:
        _compile()  # before the clock starts
        start = time.perf_counter()
        order, complete = _Run(data, seed, start + (seconds if limit is None else limit)).best(seconds)
    took = time.perf_counter() - start
    before, after = kept_magnitude(data), kept_magnitude(data[order])
    if after <= before:
        order, after = np.arange(columns, dtype=np.int64), before
    return Found(order, before, after, half_of_all(data), took, complete)


def kept_magnitude(data: np.ndarray) -> float:
    """What 2:4 keeps of magnitudes [columns, rows] in this order, summed in float64."""
    groups = data.reshape(len(data) // GROUP, GROUP, data.shape[1])
    return float(np.partition(groups, 1, axis=1)[:, 2:].sum(dtype=np.float64))


def half_of_all(data: np.ndarray) -> float:
    """The magnitude of the larger half of all weights, summed in float64."""
    flat = data.ravel()
    return float(np.partition(flat, flat.size // 2)[flat.size // 2 :].sum(dtype=np.float64)) if flat.size else 0.0


_compiled = False


def _compile() -> None:
    global _compiled  # noqa: PLW0603 (once per process)
    if not _compiled:
        data = np.random.default_rng(0).random((16, 8), dtype=np.float32)
        _Run(data, 0, time.perf_counter() + 60).kicks(200)
        _Run(data, 0, time.perf_counter() + 60).swaps(1000)
        _compiled = True


class _Run:
    """One search: the order, what each stripe keeps, and which pairs have been looked at."""

    def __init__(self, data: np.ndarray, seed: int, deadline: float) -> None:
        from pipeline.sparsity.permutation import kernels

        self.kernels = kernels
        self.tables = (PAIRS, PARTS, PART_PAIRS)
        self.data, self.seed, self.deadline = data, seed, deadline
        self.order = np.arange(data.shape[0], dtype=np.int64)
        self.now = np.empty(data.shape[0] // GROUP, dtype=np.float32)
        kernels.all_kept(data, self.order, self.now)
        stripes = self.now.size
        self.seen = np.full((stripes, stripes), -1, dtype=np.int64)
        self.changed = np.zeros(stripes, dtype=np.int64)
        self.clock = 0
        self.state = (self.order, self.now, self.seen, self.changed)
        self.unit = max(kernels.mean_change(data, self.order, self.now, seed, 500), 1e-12)

    def best(self, seconds: float) -> tuple[np.ndarray, bool]:
        rows, stripes = self.data.shape[1], self.now.size
        looks = int(seconds * 1e9 / (PAIR_NS[0] + PAIR_NS[1] * rows))
        pairs = stripes * (stripes - 1) // 2
        if looks >= ROUNDS * pairs:
            return self.kicks(looks)
        polish = min(pairs, looks // 5)  # one look at every pair, in a fifth of the time at most
        swaps = int((seconds * 1e9 - polish * (PAIR_NS[0] + PAIR_NS[1] * rows)) / (SWAP_NS[0] + SWAP_NS[1] * rows))
        done = self.swaps(swaps)
        return self.order, self.improve(polish) and done

    def over(self) -> bool:
        return time.perf_counter() >= self.deadline

    def improve(self, looks: int) -> bool:
        """Greedy until nothing is left, or `looks`; False where the time was over first."""
        step = max(1, min(looks, int(5e6 / self.data.shape[1])))
        made, start, done = 0, 0, False
        while not done and made < looks:
            if self.over():
                return False
            limit = min(step, looks - made)
            self.clock, count, start, done = self.kernels.improve(self.data, *self.state, self.clock, start, limit, *self.tables)
            made += count
        return True

    def kicks(self, looks: int) -> tuple[np.ndarray, bool]:
        """Greedy to a local optimum, then escapes; better by about a tenth of a swap's change counts as little worse."""
        if not self.improve(looks):
            return self.order, False
        if self.now.size < LEAST_STRIPES:
            return self.order, True  # two stripes are solved exactly
        best, here = self.order.copy(), float(self.now.sum())
        most, made, random = here, 0, np.random.default_rng(self.seed)
        kept = [array.copy() for array in self.state]
        while made < looks:
            if self.over():
                return best, False
            self.clock = self.kernels.kick(self.data, self.order, self.now, self.changed, self.clock, int(random.integers(1 << 31)))
            self.clock, count, _, _ = self.kernels.improve(self.data, *self.state, self.clock, 0, 1 << 40, *self.tables)
            made += count
            after = float(self.now.sum())
            temperature = max(self.unit * 0.2 * (1 - made / looks), 1e-9)
            if after >= here or random.random() < math.exp((after - here) / temperature):
                here = after
                for held, array in zip(kept, self.state, strict=True):
                    held[...] = array
                if after > most:
                    most, best = after, self.order.copy()
            else:
                for held, array in zip(kept, self.state, strict=True):
                    array[...] = held
        return best, True

    def swaps(self, moves: int) -> bool:
        """Annealing, over windows of stripes that are drawn anew."""
        first, last = HOT * self.unit, COLD * self.unit
        random, stripes, rows = np.random.default_rng(self.seed), self.now.size, self.data.shape[1]
        width = min(stripes, max(8, CACHED // (GROUP * rows)))
        step = max(1, min(moves, VISIT * GROUP * width))
        done = 0
        while done < moves:
            for window in np.array_split(random.permutation(stripes), max(1, stripes // width)):
                count = min(step, moves - done)
                if not count:
                    break
                if self.over():
                    return False
                hot, cold = (first * (last / first) ** (at / moves) for at in (done, done + count))
                self.kernels.anneal(self.data, self.order, self.now, window, int(random.integers(1 << 31)), count, hot, cold)
                done += count
        return True
