"""From scores to a mask: the two best of every four along the reduction axis."""

from __future__ import annotations

import torch

from pipeline.errors import StageError
from pipeline.pattern import GROUP, KEEP
from pipeline.sparsity.two_four import AXIS

LARGE = 1 << 18
"""Weights from which compiled code pays for its import."""


def two_best(scores: torch.Tensor, axis: int = AXIS) -> torch.Tensor:
    """Keep the two highest scores of every group of four along `axis`.

    Ties go to the lower position, so the mask always keeps exactly two.

    Args:
        scores: Any shape whose `axis` is a multiple of 4, any real dtype, no NaN.
        axis: The reduction axis.

    Returns:
        bool tensor of the same shape: True where kept.
    """
    shape = scores.shape
    axis %= scores.ndim
    grouped = scores.reshape(*shape[:axis], shape[axis] // GROUP, GROUP, *shape[axis + 1 :])
    lane = [grouped.select(axis + 1, index) for index in range(GROUP)]
    # one comparison per pair: the earlier lane wins it when it is at least as large
    wins = [torch.zeros_like(lane[0], dtype=torch.uint8) for _ in lane]
    for first in range(GROUP):
        for second in range(first + 1, GROUP):
            won = lane[first] >= lane[second]
            wins[first] += won
            wins[second] += ~won
    return torch.stack([count >= GROUP - KEEP for count in wins], dim=axis + 1).reshape(shape)


def magnitude_mask(weight: torch.Tensor, axis: int = AXIS) -> torch.Tensor:
    """The 2:4 mask that keeps the most absolute weight.

    Args:
        weight: [out, in, *kernel], floating point.
        axis: The reduction axis.

    Returns:
        bool tensor of the weight's shape.
    """
    if weight.numel() >= LARGE:
        from pipeline.sparsity import fast_choose

        if fast_choose.applies(weight, axis % weight.ndim):
            return fast_choose.magnitude_mask(weight)
    return two_best(weight.detach().abs(), axis)


def refuse_nonfinite(weight: torch.Tensor, layer: str) -> None:
    """Stop on NaN or infinity, which no criterion can rank.

    Raises:
        StageError: names the layer and how many values are not finite.
    """
    bad = int((~torch.isfinite(weight)).sum())
    if bad:
        raise StageError(
            f"{bad} of {weight.numel()} weights are NaN or infinite: they cannot be ranked",
            where=layer,
            hint="look at the training that left them (learning rate, mixed precision), or exclude the layer",
        )


def kept_share(weight: torch.Tensor, mask: torch.Tensor) -> float:
    """Share of the absolute weight that the mask keeps, 0..1 (1 for a weight of zeros)."""
    magnitude = weight.detach().abs().double()
    total = float(magnitude.sum())
    return float((magnitude * mask).sum()) / total if total else 1.0
