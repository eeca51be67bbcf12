"""Small models that the tests of masks share."""

from __future__ import annotations

import pytest
import torch
from torch import nn


class Mixed(nn.Module):
    """One layer of every sort: first layer with one channel, plain, depthwise, grouped, attention, embedding, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.plain = nn.Conv2d(16, 32, 3, padding=1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.grouped = nn.Conv2d(32, 32, 1, groups=4)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.hidden = nn.Linear(32, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.plain(self.norm(self.first(x)).relu()).relu()
        tokens = self.grouped(self.depthwise(y)).flatten(2).transpose(1, 2)
        mixed, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return self.head(self.hidden(mixed.mean(1)).relu())


@pytest.fixture
def mixed() -> Mixed:
    torch.manual_seed(0)
    return Mixed()
