"""First-order importance: (weight x gradient)^2, the expected change of a loss when the weight goes (Molchanov et al.,
"Importance Estimation for Neural Network Pruning", CVPR 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from pipeline.sparsity.calibration import Calibration, evaluating
from pipeline.sparsity.choose import two_best
from pipeline.sparsity.inputs import tensors_in
from pipeline.sparsity.layout import as_matrix
from pipeline.sparsity.sites import Site

Loss = Callable[[Any, int], torch.Tensor]
"""From the model's outputs and the number of the calibration batch to a scalar."""


def random_projection(seed: int) -> Loss:
    """A loss that needs no labels: the outputs times random signs.

    The square of its gradient is, in expectation, the sum over samples and outputs of the squared derivatives: how much
    the outputs themselves would change (the diagonal of the Gauss-Newton matrix; Hutchinson's estimator).
    """
    generator = torch.Generator().manual_seed(seed)

    def loss(outputs: Any, batch: int) -> torch.Tensor:
        total = torch.zeros(())
        for one in tensors_in(outputs):
            signs = torch.randint(0, 2, one.shape, generator=generator).to(one.device, one.dtype) * 2 - 1
            total = total.to(one.device) + (one * signs).sum()
        return total

    return loss


def gradient_squares(model: nn.Module, sites: Sequence[Site], calibration: Calibration, loss: Loss) -> dict[str, torch.Tensor]:
    """Sum over batches of the squared gradient, by weight key, in the weight's shape, float64; unused weights are left out."""
    weights = [site.parameter for site in sites if site.parameter is not None]
    asked = [weight.requires_grad for weight in weights]
    sums: dict[str, torch.Tensor] = {}
    with evaluating(model), torch.enable_grad():
        for weight in weights:
            weight.requires_grad_(True)
        try:
            for number, outputs in enumerate(calibration.run(model)):
                found = torch.autograd.grad(loss(outputs, number), weights, allow_unused=True)
                for site, gradient in zip(sites, found, strict=True):
                    if gradient is not None:
                        square = gradient.detach().double().square()
                        sums[site.key] = sums[site.key] + square if site.key in sums else square
        finally:
            for weight, before in zip(weights, asked, strict=True):
                weight.requires_grad_(before)
    return sums


def first_order_mask(weight: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
    """Keep the two of four with the largest w^2 * sum(g^2).

    Args:
        weight: [out, in, *kernel].
        squares: Sums of squared gradients, of the same shape.

    Returns:
        bool [out, columns], as a matrix.
    """
    return two_best(as_matrix(weight.double().square() * squares))
