"""The two-stripe search in torch, for a GPU: each round pairs all stripes at random and improves every pair at once.

All 35 partings of a pair are scored together. While the temperature lasts, a pair takes a parting with probability
proportional to exp(gain / temperature) (the Gumbel trick), which is how the search escapes from local optima; then the best.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from pipeline.sparsity.permutation.search import GROUP, Found, half_of_all, kept_magnitude
from pipeline.sparsity.permutation.tables import PAIRS, PART_PAIRS, PARTS

ELEMENTS = 1 << 26
"""Most elements of one temporary (256 MiB in fp32)."""
WARM = 0.8
"""Part of the time in which worse partings may be taken."""


def search_torch(
    matrix: np.ndarray | torch.Tensor, *, seconds: float = 0.0, rounds: int | None = None, seed: int = 0, device: str = "cuda"
) -> Found:
    """Search on a torch device.

    Args:
        matrix: [rows, columns], any sign; columns a multiple of 8 (an odd stripe sits a round out otherwise).
        seconds: Time to spend; the rounds that fit into it depend on the machine.
        rounds: Rounds to make instead, whatever they take: the order found then depends on the seed alone.
        seed: Of pairings and escapes.
        device: `cuda` or `cpu`.
    """
    host = np.abs(np.asarray(matrix.cpu() if isinstance(matrix, torch.Tensor) else matrix, dtype=np.float32)).T
    data = torch.from_numpy(np.ascontiguousarray(host)).to(device)
    start = time.perf_counter()
    walk, made = _Rounds(data, seed), 0
    while len(data) > GROUP:
        gone = made / rounds if rounds else (time.perf_counter() - start) / max(seconds, 1e-9)
        if gone >= 1:
            break
        walk.step(1 - gone / WARM)
        made += 1
    order = walk.best.cpu().numpy()
    before, after = kept_magnitude(host), kept_magnitude(host[order])
    if after <= before:
        order, after = np.arange(len(host), dtype=np.int64), before
    return Found(order, before, after, half_of_all(host), time.perf_counter() - start, True)


class _Rounds:
    def __init__(self, data: torch.Tensor, seed: int) -> None:
        self.data = data
        self.generator = torch.Generator(data.device).manual_seed(seed)
        self.pairs, self.parts, self.part_pairs = (torch.from_numpy(one).to(data.device) for one in (PAIRS, PARTS, PART_PAIRS))
        self.order = torch.arange(len(data), device=data.device)
        self.best, self.most = self.order.clone(), -1.0
        self.unit = 0.0

    def step(self, left: float) -> None:
        """One round: every stripe meets one other; `left` of the warm time is still to come, none if negative."""
        stripes = len(self.order) // GROUP
        met = torch.randperm(stripes, generator=self.generator, device=self.data.device)[: stripes // 2 * 2].reshape(-1, 2)
        places = (met.unsqueeze(2) * GROUP + torch.arange(GROUP, device=met.device)).reshape(len(met), 2 * GROUP)
        columns = self.order[places]
        gains = self._scores(columns)
        gains = gains - gains[:, :1]
        if not self.unit:
            self.unit = float(gains.abs().mean()) or 1e-12
        if left > 0:
            noise = torch.rand(gains.shape, generator=self.generator, device=gains.device).clamp_min(1e-12)
            gains = gains - torch.log(-torch.log(noise)) * (0.15 * self.unit * left)
        self.order[places] = columns.gather(1, self.parts[gains.argmax(dim=1)])
        if left <= 0 or self.most < 0:
            self._remember()

    def _remember(self) -> None:
        kept = float(self.data[self.order].reshape(-1, GROUP, self.data.shape[1]).topk(2, dim=1).values.sum(dtype=torch.float64))
        if kept > self.most:
            self.most, self.best = kept, self.order.clone()

    def _scores(self, columns: torch.Tensor) -> torch.Tensor:
        """What each parting of each eight columns keeps: [pairs, 35]."""
        rows = self.data.shape[1]
        found = torch.zeros(len(columns), len(self.parts), device=columns.device)
        width = max(1, min(rows, ELEMENTS // (len(columns) * len(self.pairs))))
        for start in range(0, rows, width):
            eight = self.data[columns, start : start + width]
            one, other = eight[:, self.pairs[:, 0]], eight[:, self.pairs[:, 1]]
            high, low = torch.maximum(one, other), torch.minimum(one, other)
            for number, (a, b, c, d) in enumerate(self.part_pairs.tolist()):
                found[:, number] += _two(high, low, a, b) + _two(high, low, c, d)
        return found


def _two(high: torch.Tensor, low: torch.Tensor, a: int, b: int) -> torch.Tensor:
    """Sum over rows of the two largest of two pairs."""
    top = torch.maximum(high[:, a], high[:, b])
    second = torch.maximum(torch.minimum(high[:, a], high[:, b]), torch.maximum(low[:, a], low[:, b]))
    return (top + second).sum(dim=1)
