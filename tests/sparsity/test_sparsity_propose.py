"""Proposals cover every layer, follow the rules, and take modelopt's masks where it applies."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from pipeline import codes, sparsity
from pipeline.errors import InputError, StageError
from pipeline.records.rung import Rung
from pipeline.sparsity.choose import kept_share, magnitude_mask


def decisions(proposal):
    return {decision.layer.id: decision for decision in proposal.decisions}


def test_every_layer_gets_a_decision_with_its_rule(mixed):
    proposal = sparsity.propose(mixed, criterion="magnitude", include=["*"], exclude=["head"])
    found = decisions(proposal)
    assert {name: one.rule for name, one in found.items()} == {
        "first": "SG306",
        "plain": "SG301",
        "depthwise": "SG307",
        "grouped": "SG308",
        "attention.in_proj": "SG301",
        "attention.out_proj": "SG301",
        "hidden": "SG301",
        "head": "SG302",
    }
    assert all(codes.get(one.rule) and one.text for one in found.values())
    assert found["plain"].proposed_by == found["hidden"].proposed_by == "modelopt"
    assert found["attention.in_proj"].proposed_by == "sparsegate"
    assert set(proposal.masks) == {"plain.weight", "attention.in_proj_weight", "attention.out_proj.weight", "hidden.weight"}
    for key, mask in proposal.masks.items():
        assert mask.dtype == torch.bool and mask.shape == mixed.state_dict()[key].shape
        assert sparsity.is_two_four(mask, 1)
    assert all((one.proof is Rung.YES) == one.masked for one in found.values())


def test_proposing_leaves_the_model_as_it_is(mixed):
    before = copy.deepcopy(mixed.state_dict())
    sparsity.propose(mixed, criterion="magnitude")
    after = mixed.state_dict()
    assert list(before) == list(after) and all(torch.equal(before[key], after[key]) for key in before)


def test_modelopt_and_our_own_masks_keep_the_same_magnitude(mixed):
    proposal = sparsity.propose(mixed, criterion="magnitude")
    for key, mask in proposal.masks.items():
        weight = mixed.state_dict()[key]
        assert kept_share(weight, mask) == pytest.approx(kept_share(weight, magnitude_mask(weight)), rel=1e-12)


def test_layers_that_are_not_included_say_so(mixed):
    found = decisions(sparsity.propose(mixed, criterion="magnitude", include=["h*"]))
    assert {name for name, one in found.items() if one.masked} == {"hidden", "head"}
    assert found["plain"].rule == "SG303"


def test_a_pattern_that_matches_nothing_is_refused(mixed):
    with pytest.raises(InputError, match="'haed' matches no layer") as caught:
        sparsity.propose(mixed, criterion="magnitude", exclude=["haed"])
    assert "train.masks.exclude" in str(caught.value) and "first" in str(caught.value)


def test_brackets_in_patterns_are_literal():
    model = nn.ModuleDict({"a[0]": nn.Linear(16, 16), "a0": nn.Linear(16, 16)})
    found = decisions(sparsity.propose(model, criterion="magnitude", include=["a[0]"]))
    assert found["a[0]"].masked and not found["a0"].masked


def test_kinds_that_are_not_supported_are_listed_and_stay_dense():
    model = nn.ModuleDict(
        {"up": nn.ConvTranspose2d(16, 16, 2), "table": nn.Embedding(8, 16), "cell": nn.LSTM(16, 16), "few": nn.Linear(4, 16)}
    )
    found = decisions(sparsity.propose(model, criterion="magnitude"))
    assert {name: one.rule for name, one in found.items()} == {
        "up": "SG304",
        "table": "SG304",
        "cell.weight_ih_l0": "SG304",
        "cell.weight_hh_l0": "SG304",
        "few": "SG309",
    }


def test_a_parametrized_weight_stays_dense():
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(16, 16)), nn.Linear(16, 16))
    proposal = sparsity.propose(model, criterion="magnitude")
    assert [(one.layer.id, one.rule) for one in proposal.decisions] == [("0", "SG305"), ("1", "SG301")]
    assert list(proposal.masks) == ["1.weight"]


def test_a_tied_weight_is_masked_once_and_named_by_each_name():
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))
    model[1].weight = model[0].weight
    proposal = sparsity.propose(model, criterion="magnitude")
    assert list(proposal.masks) == ["0.weight", "1.weight"]
    assert torch.equal(proposal.masks["0.weight"], proposal.masks["1.weight"])
    assert [one.layer.modules for one in proposal.decisions] == [["0", "1"]]


def test_a_weight_tied_to_an_embedding_stays_dense():
    model = nn.Sequential(nn.Embedding(32, 16), nn.Linear(16, 32))
    model[1].weight = model[0].weight
    (one,) = sparsity.propose(model, criterion="magnitude").decisions
    assert not one.masked and one.rule == "SG310" and "Linear" in one.text


def test_weights_that_are_not_finite_are_refused(mixed):
    mixed.hidden.weight.data[3, 5] = float("nan")
    with pytest.raises(StageError, match="NaN") as caught:
        sparsity.propose(mixed, criterion="magnitude")
    assert "hidden" in str(caught.value)
