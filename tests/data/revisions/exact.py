"""A model and data whose arithmetic is exact in float32: whole numbers, few of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


def model() -> nn.Module:
    net = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 1), nn.Flatten(), nn.Linear(16 * 16, 4))
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randint(-4, 5, parameter.shape, generator=generator).float())
    return net


def data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(11)

    def split(count: int) -> tuple[np.ndarray, np.ndarray]:
        return draw.integers(-2, 3, (count, 4, 4, 4)).astype(np.float32), draw.integers(0, 4, count)

    return {"train": split(16), "select": split(12), "test": split(24)}
