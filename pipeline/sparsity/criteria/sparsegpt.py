"""SparseGPT: masks and a weight update from second-order reconstruction (Frantar and Alistarh, "SparseGPT", ICML 2023).

Columns are pruned from left to right; after each group of four, the weights further right take over what was lost, by the
inverse of the activations' Gram matrix restricted to the columns that are still free. With U the upper Cholesky factor of the
whole inverse, that restricted inverse is U[i:, i:]^T U[i:, i:], so one factorisation serves all steps.

The joint choice compares the six masks of a group by the error that is left after the update: removing the set S costs
w_S (A_SS)^-1 w_S^T, where A is the inverse's block of the group (optimal brain surgeon for two weights at once).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import torch

from pipeline.errors import StageError
from pipeline.pattern import GROUP, KEEP
from pipeline.sparsity.choose import two_best

BLOCK = 128
"""Columns whose effect on the columns right of the block is applied in one matrix product."""
DAMPING = 0.01
"""Part of the mean diagonal that is added to the diagonal, so that the Gram matrix can be inverted."""
PRUNED = list(combinations(range(GROUP), GROUP - KEEP))


@torch.no_grad()
def sparsegpt(
    matrix: torch.Tensor, gram: torch.Tensor, *, joint: bool = False, damping: float = DAMPING
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prune a layer 2:4 with its weight update.

    Args:
        matrix: Weight [out, columns], columns a multiple of 4.
        gram: X^T X [columns, columns] of the activations, of the type to compute in (float32 or float64).
        joint: Choose the two weights of a group together, not each by itself.
        damping: Relative to the mean of the diagonal.

    Returns:
        Mask bool [out, columns], and the updated weight in the Gram matrix's type, zero where masked.

    Raises:
        StageError: the Gram matrix is not positive definite even with a hundredfold damping.
    """
    weight = matrix.detach().to(gram.dtype).t().contiguous()  # [columns, out]: a column of the weight is contiguous
    dead = gram.diagonal() == 0
    weight[dead] = 0
    upper = inverse_factor(gram, damping)
    keep = torch.empty_like(weight, dtype=torch.bool)
    step = (_compiled if weight.device.type == "cpu" else _with_torch)(joint)
    for start in range(0, len(weight), BLOCK):
        stop = min(start + BLOCK, len(weight))
        errors = torch.empty_like(weight[start:stop])
        for column in range(start, stop, GROUP):
            group, own = slice(column, column + GROUP), upper[column : column + GROUP, column : column + GROUP]
            error = errors[column - start : column - start + GROUP]
            step(weight[group], own, keep[group], error)
            weight[column + GROUP : stop].addmm_(upper[group, column + GROUP : stop].t(), error, alpha=-1)
        weight[stop:].addmm_(upper[start:stop, stop:].t(), errors, alpha=-1)
    return keep.t().contiguous(), weight.t().contiguous()


def inverse_factor(gram: torch.Tensor, damping: float) -> torch.Tensor:
    """Upper Cholesky factor of the inverse of the damped Gram matrix; damping grows tenfold where that fails."""
    diagonal = gram.diagonal()
    for factor in (1, 10, 100):
        damped = gram.clone()
        added = damping * factor * diagonal.mean()
        damped.diagonal().copy_(torch.where(diagonal == 0, torch.ones_like(diagonal), diagonal) + added)
        lower, info = torch.linalg.cholesky_ex(damped)
        if not info.any():
            inverse = torch.cholesky_inverse(lower)
            upper: torch.Tensor
            upper, info = torch.linalg.cholesky_ex(inverse, upper=True)
            if not info.any():
                return upper
    raise StageError(
        "the activations' Gram matrix cannot be inverted", where="sparsegpt", hint="use more calibration batches, or another criterion"
    )


Step = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], None]
"""(weight [4, out], the factor's block [4, 4], keep [4, out], error [4, out]): choose, update within the group, write the errors
that are passed on."""


def _with_torch(joint: bool) -> Step:
    return _joint if joint else _separate


def _compiled(joint: bool) -> Step:
    from pipeline.sparsity.criteria import fast_groups

    pairs = np.array(PRUNED)

    def step(weight: torch.Tensor, own: torch.Tensor, keep: torch.Tensor, error: torch.Tensor) -> None:
        arrays = weight.numpy(), own.contiguous().numpy(), keep.numpy(), error.numpy()
        if joint:
            wide = arrays[1].astype(np.float64)
            inverse = wide.T @ wide
            blocks = np.linalg.inv(inverse[pairs[:, :, None], pairs[:, None, :]])
            fast_groups.joint(arrays[0], arrays[1], pairs, blocks, arrays[2], arrays[3])
        else:
            fast_groups.separate(*arrays)

    return step


def _separate(weight: torch.Tensor, own: torch.Tensor, keep: torch.Tensor, error: torch.Tensor) -> None:
    """Choose by w^2 / u_ii^2, one weight at a time."""
    diagonal = own.diagonal().unsqueeze(1)
    keep.copy_(two_best((weight / diagonal).square(), axis=0))
    for index in range(GROUP):
        error[index] = weight[index].masked_fill(keep[index], 0) / diagonal[index]
        weight[index:].addr_(own[index, index:], error[index], alpha=-1)
    weight.masked_fill_(~keep, 0)


def _joint(weight: torch.Tensor, own: torch.Tensor, keep: torch.Tensor, error: torch.Tensor) -> None:
    """Choose the pair whose removal leaves the least error."""
    inverse = own.t() @ own
    solved, costs = [], []
    for one, other in PRUNED:
        block = inverse[[one, other]][:, [one, other]]
        pair = weight[[one, other]]
        solution = torch.linalg.inv(block) @ pair
        solved.append(solution)
        costs.append((pair * solution).sum(dim=0))
    choice = torch.stack(costs).argmin(dim=0)
    keep.fill_(True)
    error.zero_()
    for index, (dropped, solution) in enumerate(zip(PRUNED, solved, strict=True)):
        mine = choice == index
        keep[list(dropped)] &= ~mine
        error += own[:, list(dropped)] @ (solution * mine)
    weight.sub_(own.t() @ error)
    weight.masked_fill_(~keep, 0)


class Grams:
    """X^T X by rows of one weight, accumulated in float64 for a float64 weight and in float32 otherwise."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = torch.float64 if dtype == torch.float64 else torch.float32
        self.grams: dict[tuple[int, int], torch.Tensor] = {}

    def __call__(self, key: str, rows: slice, columns: torch.Tensor) -> None:
        columns = columns.to(self.dtype)
        place = (rows.start, rows.stop)
        if place in self.grams:
            self.grams[place].addmm_(columns.t(), columns)
        else:
            self.grams[place] = columns.t() @ columns


def reconstruction_error(difference: torch.Tensor, gram: torch.Tensor) -> float:
    """Squared error of the layer's output, summed over the calibration set: trace(D G D^T)."""
    wide = difference.to(gram.dtype)
    return float(((wide @ gram) * wide).sum(dtype=torch.float64))
