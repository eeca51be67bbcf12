"""A small convolutional network for 8x8 digits that holds every kind of layer a 2:4 pipeline has to decide about.

It is an example of a user's own model: nothing in it knows of sparsegate.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def conv(inputs: int, outputs: int, kernel: int = 3, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution without bias, batch norm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class Residual(nn.Module):
    """Two convolutions and the way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = conv(channels, channels)
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.second(self.first(x)))


class DigitNet(nn.Module):
    """[n, 1, 8, 8] grey images to [n, 10] class scores."""

    def __init__(self, width: int = 32, classes: int = 10) -> None:
        super().__init__()
        self.stem = conv(1, width)  # one input channel: nothing to prune four by four
        self.body = Residual(width)
        self.widen = conv(width, width + 8, 1)  # 32 -> 40 channels
        self.depthwise = conv(width + 8, width + 8, groups=width + 8)  # one channel a group
        self.pointwise = conv(width + 8, 2 * width, 1)  # 40 input channels: a multiple of 4, not of 16
        self.grouped = conv(2 * width, 2 * width, stride=2, groups=2)
        self.deep = conv(2 * width, 2 * width)
        self.hidden = nn.Linear(2 * width * 16, 2 * width)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(self.stem(x))
        x = self.pointwise(self.depthwise(self.widen(x)))
        x = self.deep(self.grouped(x))
        x = torch.relu(self.hidden(x.flatten(1)))
        return self.head(self.dropout(x))


def build(width: int = 32) -> DigitNet:
    """What the recipe names: `model.py:build`."""
    return DigitNet(width)
