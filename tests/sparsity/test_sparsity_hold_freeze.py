"""Masked weights stay zero through training, and freezing proves it or names what grew back."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from pipeline import sparsity
from pipeline.errors import InputError, StageError
from pipeline.records.rung import Rung
from pipeline.sparsity.choose import magnitude_mask

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-2, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5),
}


def two_layers():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8))
    return model, {key: magnitude_mask(value) for key, value in model.state_dict().items() if value.ndim == 2}


def steps(model, optimizer, count=3):
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.randn(8, 16)).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_masked_weights_and_gradients_stay_zero_while_the_rest_trains(kind):
    model, masks = two_layers()
    optimizer = OPTIMIZERS[kind](model.parameters())
    steps(model, optimizer)  # dense steps first: momentum of entries that will be masked
    before = model[0].weight.detach().clone()
    holder = sparsity.hold(model, masks)
    holder.attach(optimizer)
    steps(model, optimizer)
    holder.check()
    for key, mask in masks.items():
        weight = model.get_parameter(key)
        assert not weight.grad[~mask].any() and not weight.detach()[~mask].any()
        assert not torch.signbit(weight.detach()[~mask]).any()
    assert not torch.equal(before[masks["0.weight"]], model[0].weight.detach()[masks["0.weight"]])


def test_check_names_the_weight_that_grew_back_and_detach_lets_go():
    model, masks = two_layers()
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    holder = sparsity.hold(model, masks)
    holder.attach(optimizer)
    holder.detach()
    holder.check()
    steps(model, optimizer, 1)
    with pytest.raises(StageError, match=r"0\.weight \(\d+\)"):
        holder.check()


def test_an_optimizer_that_is_not_attached_moves_no_masked_weight_without_momentum():
    model, masks = two_layers()
    holder = sparsity.hold(model, masks)
    steps(model, torch.optim.SGD(model.parameters(), 0.1))
    holder.check()  # gradients alone were zeroed


def test_a_tied_weight_is_held_once():
    model, masks = two_layers()
    model[2] = nn.Linear(16, 16)
    model[2].weight = model[0].weight
    holder = sparsity.hold(model, {"0.weight": masks["0.weight"], "2.weight": masks["0.weight"].clone()})
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    holder.attach(optimizer)
    steps(model, optimizer)
    holder.check()
    with pytest.raises(InputError, match="the same weight"):
        sparsity.hold(model, {"0.weight": masks["0.weight"], "2.weight": ~masks["0.weight"]})


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_whatever_stood_there_becomes_plus_zero(dtype):
    layer = nn.Conv2d(4, 2, 3).to(dtype).to(memory_format=torch.channels_last)
    masks = {"weight": magnitude_mask(layer.weight)}
    before = layer.weight.detach().clone()
    layer.weight.data[~masks["weight"]] = torch.tensor([float("nan"), -0.0, float("-inf"), 1.0] * 9, dtype=dtype)
    sparsity.hold(layer, masks).check()
    assert torch.equal(layer.weight.detach(), torch.where(masks["weight"], before, 0.0))
    assert not torch.signbit(layer.weight.detach()[~masks["weight"]]).any()


def test_masks_follow_the_model_to_another_type():
    model, masks = two_layers()
    holder = sparsity.hold(model, masks)
    model.to(torch.bfloat16)
    model[0].weight.data.fill_(1.0)
    holder.apply()
    holder.check()
    assert model[0].weight.detach().sum() == 128


def test_masks_of_another_model_are_refused():
    model, masks = two_layers()
    with pytest.raises(InputError, match="no parameter"):
        sparsity.hold(model, {"5.weight": masks["0.weight"]})
    with pytest.raises(InputError, match=r"shape \[8, 16\]"):
        sparsity.hold(model, {"2.weight": masks["0.weight"]})


def test_freezing_writes_plus_zero_and_proves_every_weight():
    model, masks = two_layers()
    model[0].weight.data[0, 0] = -0.0
    sparsity.hold(model, masks)
    frozen = sparsity.freeze(model.state_dict(), masks)
    for key in masks:
        assert frozen.layers[key].proof is Rung.YES and frozen.layers[key].regrown == 0
        zeros = frozen.weights[key] == 0
        assert not torch.signbit(frozen.weights[key][zeros]).any()
        assert torch.equal(frozen.weights[key], model.state_dict()[key])
    assert frozen.layers["2.weight"].zero_fraction == 0.5
    assert frozen.remasked == [] and frozen.mask_digest == sparsity.mask_digest(masks)


def test_one_broken_group_stops_the_freeze_with_its_layer_and_count():
    model, masks = two_layers()
    sparsity.hold(model, masks)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    state["2.weight"][3, int((~masks["2.weight"][3]).nonzero()[0])] = 1e-30
    with pytest.raises(StageError, match=r"2\.weight: 1 of 64 masked weights grew back") as caught:
        sparsity.freeze(state, masks)
    assert "0.weight" not in str(caught.value) and caught.value.exit_code == 4
    frozen = sparsity.freeze(state, masks, on_regrowth="remask")
    assert frozen.remasked == ["2.weight"] and frozen.layers["2.weight"].regrown == 1
    assert sparsity.is_two_four(frozen.weights["2.weight"], 1)


def test_dense_weights_in_a_checkpoint_are_called_so():
    model, masks = two_layers()
    with pytest.raises(StageError, match=r"0\.weight: the checkpoint silently holds dense weights"):
        sparsity.freeze(model.state_dict(), masks)


def test_a_reparametrised_checkpoint_is_refused():
    model, masks = two_layers()
    prune.custom_from_mask(model[0], "weight", masks["0.weight"])
    with pytest.raises(StageError, match=r"torch\.nn\.utils\.prune: 0\.weight_orig"):
        sparsity.freeze(model.state_dict(), masks)
    state = {**two_layers()[0].state_dict(), "0._weight_mask": masks["0.weight"]}
    with pytest.raises(StageError, match=r"modelopt: 0\._weight_mask"):
        sparsity.freeze(state, masks)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s, m: s.pop("0.weight"), "no such weight"),
        (lambda s, m: s.update({"0.weight": torch.zeros(4, 4)}), "shape"),
        (lambda s, m: m.update({"0.weight": torch.ones(16, 16, dtype=torch.bool)}), "mask is not 2:4"),
        (lambda s, m: s["0.weight"].fill_(float("inf")), "NaN or infinity"),
    ],
)
def test_a_state_that_cannot_be_proved_is_refused_with_the_weight(change, words):
    model, masks = two_layers()
    sparsity.hold(model, masks)
    state = dict(model.state_dict())
    change(state, masks)
    with pytest.raises(StageError, match=words) as caught:
        sparsity.freeze(state, masks)
    assert "0.weight" in str(caught.value)


def test_digests_see_every_bit_and_no_order():
    one = {"a": torch.zeros(2, 2), "b": torch.ones(3, dtype=torch.bfloat16), "c": torch.tensor(1)}
    assert sparsity.weights_digest(one) == sparsity.weights_digest(dict(reversed(one.items())))
    others = [
        {**one, "a": -one["a"]},
        {**one, "a": one["a"].reshape(4)},
        {**one, "a": one["a"].half()},
        {"d": one["a"], "b": one["b"], "c": one["c"]},
    ]
    assert len({sparsity.weights_digest(state) for state in [one, *others]}) == 5
