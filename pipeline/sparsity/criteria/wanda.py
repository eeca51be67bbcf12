"""Wanda: weight magnitude times the norm of its input (Sun, Liu, Bair, Kolter, "A Simple and Effective Pruning Approach for
Large Language Models", ICLR 2024).
"""

from __future__ import annotations

import torch

from pipeline.sparsity.choose import two_best


def wanda_mask(matrix: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
    """Keep the two of four with the largest |w_ij| * ||x_j||.

    Args:
        matrix: Weight [out, columns].
        squares: Sum of squared activations by column, [columns] float64.

    Returns:
        bool [out, columns].
    """
    return two_best(matrix.abs() * squares.sqrt().to(matrix.dtype))


class SquareSums:
    """Sums of squared activations by weight (and rows of it): one vector per layer, whatever the calibration set's size."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, int, int], torch.Tensor] = {}

    def __call__(self, key: str, rows: slice, columns: torch.Tensor) -> None:
        place = (key, rows.start, rows.stop)
        found = columns.square().sum(dim=0, dtype=torch.float64)
        self.sums[place] = self.sums[place] + found if place in self.sums else found
