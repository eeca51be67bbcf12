"""From samples to one observation per round: the block's median or mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CENTRES = ("p50", "mean")
"""Quantities taken per round; the tails need more samples than a block has, and are pooled instead."""


def per_round(rounds: NDArray[np.int32], ms: NDArray[np.float64], quantity: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Reduce each round's block.

    Args:
        rounds: Round of each sample [n], any order.
        ms: Times [n].
        quantity: `p50` or `mean`.

    Returns:
        The rounds present, ascending [k], and one figure in ms for each [k].
    """
    order = np.argsort(rounds, kind="stable")
    names, starts, sizes = np.unique(rounds[order], return_index=True, return_counts=True)
    if not len(names):
        return names, np.empty(0)
    sorted_ms = ms[order]
    if (sizes == sizes[0]).all():
        blocks = sorted_ms.reshape(len(names), sizes[0])
        return names, np.median(blocks, axis=1) if quantity == "p50" else blocks.mean(axis=1)
    reduce = np.median if quantity == "p50" else np.mean
    return names, np.array([reduce(piece) for piece in np.split(sorted_ms, starts[1:])])


def log_ratios(
    arm: tuple[NDArray[np.int32], NDArray[np.float64]], over: tuple[NDArray[np.int32], NDArray[np.float64]], quantity: str
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Rounds that both arms have, in time order [k], and for each the log of one arm's figure over the other's [k]."""
    left_rounds, left = per_round(*arm, quantity)
    right_rounds, right = per_round(*over, quantity)
    rounds, at_left, at_right = np.intersect1d(left_rounds, right_rounds, assume_unique=True, return_indices=True)
    return rounds, np.log(left[at_left]) - np.log(right[at_right])
