"""Layers that TensorRT fuses side by side are masked together or not at all."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipeline import sparsity


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
        self.a, self.b = nn.Conv1d(16, 16, 1), nn.Conv1d(16, 8, 1)
        self.wide = nn.Conv1d(16, 8, 3, padding=1)
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        y = self.q(x) * self.k(x) + self.v(x)
        z = y.transpose(1, 2)
        z = self.a(z)[:, :8] + self.b(z) + self.wide(z)
        return self.second(self.first(y)), z


@pytest.mark.parametrize("calibration", [None, [torch.randn(2, 5, 16)]])
@pytest.mark.parametrize(
    ("excluded", "also"),
    [("k", {"q", "v"}), ("a", {"b"}), ("wide", set()), ("first", set())],
)
def test_a_dense_layer_keeps_its_siblings_dense(calibration, excluded, also):
    criterion = "magnitude" if calibration is None else "wanda"
    proposal = sparsity.propose(Branches(), criterion=criterion, exclude=[excluded], calibration=calibration, proposer="sparsegate")
    found = {one.layer.id: one for one in proposal.decisions}
    assert {name for name, one in found.items() if one.rule == "SG312"} == also
    assert all(excluded in found[name].text for name in also)
    assert {name for name, one in found.items() if not one.masked} == {excluded, *also}


def test_siblings_can_be_left_apart():
    proposal = sparsity.propose(Branches(), criterion="magnitude", exclude=["k"], siblings="apart", proposer="sparsegate")
    assert [one.layer.id for one in proposal.decisions if not one.masked] == ["k"]


def test_a_tensor_changed_in_place_between_two_reads_makes_no_siblings():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(16, 16), nn.Linear(16, 16)

        def forward(self, x):
            x = x + 1
            y = self.one(x)
            return y + self.two(x.mul_(2))

    proposal = sparsity.propose(InPlace(), criterion="wanda", exclude=["one"], calibration=[torch.randn(2, 16)])
    assert [one.masked for one in proposal.decisions] == [False, True]
