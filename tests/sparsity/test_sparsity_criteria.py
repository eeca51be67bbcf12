"""Criteria equal straightforward float64 references, give 2:4 masks everywhere, and never rebuild worse than magnitude."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from pipeline import sparsity
from pipeline.errors import InputError, StageError
from pipeline.records.rung import Rung
from pipeline.sparsity.calibration import Calibration, activations
from pipeline.sparsity.choose import magnitude_mask
from pipeline.sparsity.criteria.run import CRITERIA
from pipeline.sparsity.criteria.sparsegpt import DAMPING, Grams, _with_torch, reconstruction_error, sparsegpt
from pipeline.sparsity.criteria.wanda import SquareSums, wanda_mask
from pipeline.sparsity.layout import as_matrix, conv_columns, from_matrix
from pipeline.sparsity.sites import find_sites


def problem(seed, rows=6, columns=16, samples=40, correlated=True):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, columns, generator=generator, dtype=torch.float64)
    if correlated:
        x = x @ torch.randn(columns, columns, generator=generator, dtype=torch.float64) + 0.3
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64), x


def damped(x):
    gram = x.T @ x
    return gram + DAMPING * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)


def reference_wanda(weight, x):
    mask = torch.zeros_like(weight, dtype=torch.bool)
    for i in range(weight.shape[0]):
        for g in range(0, weight.shape[1], 4):
            scores = [abs(float(weight[i, j])) * float(x[:, j].norm()) for j in range(g, g + 4)]
            for j in sorted(range(4), key=lambda j: -scores[j])[:2]:
                mask[i, g + j] = True
    return mask


def reference_sparsegpt(weight, x):
    """One row and one column at a time, every restricted inverse computed anew."""
    h, weight = damped(x), weight.clone()
    mask = torch.ones_like(weight, dtype=torch.bool)
    for g in range(0, weight.shape[1], 4):
        inverses = [torch.linalg.inv(h[j:, j:]) for j in range(g, g + 4)]
        for row in range(weight.shape[0]):
            scores = [float(weight[row, g + j] ** 2 / inverses[j][0, 0]) for j in range(4)]
            dropped = sorted(range(4), key=lambda j: scores[j])[:2]
            for j in range(4):
                if j in dropped:
                    error = weight[row, g + j] / inverses[j][0, 0]
                    weight[row, g + j :] -= error * inverses[j][0]
                    weight[row, g + j], mask[row, g + j] = 0, False
    return mask, weight


def reference_joint(weight, x):
    """For each row and group, solve the least squares problem of all six masks outright."""
    h, weight = damped(x), weight.clone()
    mask = torch.ones_like(weight, dtype=torch.bool)
    for g in range(0, weight.shape[1], 4):
        rest = h[g:, g:]
        for row in range(weight.shape[0]):
            best = None
            for dropped in combinations(range(4), 2):
                free = [j for j in range(len(rest)) if j not in dropped]
                delta = torch.zeros(len(rest), dtype=torch.float64)
                delta[list(dropped)] = -weight[row, [g + j for j in dropped]]
                delta[free] = torch.linalg.solve(rest[free][:, free], -rest[free][:, list(dropped)] @ delta[list(dropped)])
                cost = float(delta @ rest @ delta)
                if best is None or cost < best[0]:
                    best = (cost, dropped, delta)
            _, dropped, delta = best
            weight[row, g:] += delta
            for j in dropped:
                weight[row, g + j], mask[row, g + j] = 0, False
    return mask, weight


@pytest.mark.parametrize("seed", range(4))
def test_wanda_equals_its_reference(seed):
    weight, x = problem(seed)
    assert torch.equal(wanda_mask(weight, x.square().sum(0)), reference_wanda(weight, x))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("joint", "reference"), [(False, reference_sparsegpt), (True, reference_joint)])
def test_sparsegpt_equals_its_reference(seed, joint, reference):
    weight, x = problem(seed)
    mask, updated = sparsegpt(weight, x.T @ x, joint=joint)
    expected_mask, expected = reference(weight, x)
    assert torch.equal(mask, expected_mask)
    assert torch.allclose(updated, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_compiled_steps_and_those_in_torch_agree(joint, dtype, monkeypatch):
    weight, x = (one.to(dtype) for one in problem(3, rows=20, columns=32, samples=200))
    compiled = sparsegpt(weight, x.T @ x, joint=joint)
    monkeypatch.setattr("pipeline.sparsity.criteria.sparsegpt._compiled", _with_torch)
    with_torch = sparsegpt(weight, x.T @ x, joint=joint)
    assert torch.equal(compiled[0], with_torch[0])
    assert torch.allclose(compiled[1], with_torch[1], rtol=1e-3, atol=1e-3 if dtype == torch.float32 else 1e-9)


def test_sparsegpt_goes_on_over_blocks():
    weight, x = problem(5, rows=3, columns=264, samples=400)
    mask, updated = sparsegpt(weight, x.T @ x)
    expected_mask, expected = reference_sparsegpt(weight, x)
    assert torch.equal(mask, expected_mask) and torch.allclose(updated, expected, rtol=1e-6, atol=1e-7)


def test_sparsegpt_takes_dead_columns_and_few_samples():
    weight, x = problem(0, samples=3)
    x[:, 5] = 0
    mask, updated = sparsegpt(weight, x.T @ x)
    assert sparsity.is_two_four(mask, 1) and torch.isfinite(updated).all() and not updated[~mask].any()


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([torch.float32, torch.float64]))
@settings(deadline=None, max_examples=30)
def test_joint_sparsegpt_and_sparsegpt_rebuild_better_than_magnitude(seed, joint, dtype):
    weight, x = (one.to(dtype) for one in problem(seed, rows=8, columns=32, samples=100))
    gram = x.T @ x
    _, updated = sparsegpt(weight, gram, joint=joint)
    assert reconstruction_error(weight - updated, gram) <= reconstruction_error(weight * ~magnitude_mask(weight), gram)


CONVS = {
    "1d": (nn.Conv1d(8, 8, 3, stride=2, padding=1), (3, 8, 11)),
    "2d": (nn.Conv2d(8, 12, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), (2, 8, 9, 7)),
    "same": (nn.Conv2d(8, 8, 4, padding="same"), (2, 8, 6, 6)),
    "valid": (nn.Conv2d(8, 8, 3, padding="valid"), (2, 8, 6, 6)),
    "3d": (nn.Conv3d(8, 8, 2, padding=1), (2, 8, 3, 4, 5)),
    "circular": (nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular"), (2, 8, 5, 5)),
}


@pytest.mark.parametrize("kind", CONVS)
def test_columns_times_the_matrix_is_the_convolution(kind):
    torch.manual_seed(0)
    conv, shape = CONVS[kind]
    x, pieces = torch.randn(shape), []
    activations(conv, find_sites(conv), Calibration([x]), lambda key, rows, piece: pieces.append(piece))
    product = torch.cat(pieces) @ as_matrix(conv.weight.detach()).T
    expected = F.relu(conv(x) - conv.bias.reshape(-1, *[1] * (x.ndim - 2))).movedim(1, -1).reshape(-1, conv.out_channels)
    assert torch.allclose(F.relu(product), expected, atol=1e-5)


def test_pieces_are_bounded(monkeypatch):
    monkeypatch.setattr("pipeline.sparsity.layout.CHUNK", 1000)
    pieces = list(conv_columns(torch.randn(7, 4, 6, 6), (3, 3), 1, 1, 1))
    assert len(pieces) == 7 and torch.cat(pieces).shape == (7 * 36, 36)


@given(st.lists(st.integers(1, 4), min_size=0, max_size=3), st.integers(1, 3), st.integers(1, 3))
def test_the_matrix_form_can_be_undone(kernel, out, into):
    weight = torch.arange(out * into * 4 * torch.Size(kernel).numel(), dtype=torch.float32).reshape(out, into * 4, *kernel)
    matrix = as_matrix(weight)
    assert torch.equal(from_matrix(matrix, weight.shape), weight)
    if kernel:
        assert torch.equal(matrix[0, : into * 4], weight.flatten(2)[0, :, 0])


def net(dtype, kernel, channels, values):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(8, channels, kernel), nn.ReLU(), nn.Conv2d(channels, 8, 1), nn.Flatten(), nn.LazyLinear(4)).to(dtype)
    model(torch.zeros(1, 8, kernel, kernel, dtype=dtype))
    with torch.no_grad():
        if values == "ties":
            for weight in model.parameters():
                weight.copy_(weight.sign() * 0.5)
        elif values == "zeros":
            model[0].weight.zero_()
            model[2].weight[:, ::2] = 0
    return model


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("values", ["random", "ties", "zeros"])
@pytest.mark.parametrize(("kernel", "channels"), [(1, 8), (3, 16)])
def test_every_mask_of_every_criterion_is_two_four_on_tensorrts_axis(criterion, dtype, values, kernel, channels):
    model = net(dtype, kernel, channels, values)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    batches = [torch.randn(5, 8, kernel, kernel, dtype=dtype) for _ in range(3)]
    proposal = sparsity.propose(model, criterion=criterion, calibration=batches, seed=1, proposer="sparsegate")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert set(proposal.masks) == {"0.weight", "2.weight", "4.weight"}
    for decision in proposal.decisions:
        mask = proposal.masks[decision.layer.weight]
        assert sparsity.is_two_four(mask, 1) and decision.proof is Rung.YES
        assert (mask.unflatten(1, (-1, 4)).sum(2) == 2).all()
        if criterion in ("wanda", "sparsegpt", "sparsegpt-joint"):
            assert decision.output_error <= decision.magnitude_error + 1e-9
    proposal.apply(model)
    sparsity.hold(model, proposal.masks).check()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_nan_is_refused_with_the_layer(criterion):
    model = net(torch.float32, 1, 8, "random")
    model[2].weight.data[0, 0] = float("nan")
    with pytest.raises(StageError) as caught:
        sparsity.propose(model, criterion=criterion, calibration=[torch.randn(2, 8, 1, 1)])
    assert "2" in str(caught.value) and "NaN" in str(caught.value)


@pytest.mark.parametrize("criterion", ["wanda", "sparsegpt", "first-order"])
def test_activations_that_are_not_finite_are_refused(criterion):
    with pytest.raises(StageError, match="calibration set are NaN"):
        sparsity.propose(net(torch.float32, 1, 8, "random"), criterion=criterion, calibration=[torch.full((2, 8, 1, 1), float("inf"))])


@pytest.mark.parametrize("criterion", sorted(set(CRITERIA) - {"magnitude"}))
def test_criteria_without_their_data_say_so(criterion):
    with pytest.raises(InputError, match="calibration"):
        sparsity.propose(net(torch.float32, 1, 8, "random"), criterion=criterion)
    with pytest.raises(InputError, match="no calibration batches"):
        sparsity.propose(net(torch.float32, 1, 8, "random"), criterion=criterion, calibration=[])


def test_an_unknown_criterion_is_refused_with_the_known_ones(mixed):
    with pytest.raises(InputError, match="no criterion 'obd'") as caught:
        sparsity.propose(mixed, criterion="obd")
    assert "wanda" in str(caught.value)


@pytest.mark.parametrize("criterion", ["wanda", "sparsegpt", "first-order"])
def test_attention_projections_are_calibrated_and_modes_restored(mixed, criterion):
    mixed.train()
    mixed.norm.eval()
    proposal = sparsity.propose(mixed, criterion=criterion, calibration=[torch.randn(6, 1, 6, 6) for _ in range(2)])
    found = {one.layer.id: one for one in proposal.decisions if one.masked}
    assert {"attention.in_proj", "attention.out_proj", "head"} <= set(found)
    assert all(one.rule == "SG301" and one.output_error is not None for one in found.values())
    assert mixed.training and not mixed.norm.training and mixed.plain.training
    assert proposal.calibration_samples == 12 and len(proposal.calibration_digest) == 64


class Crossing(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, 3 * x.flip(1) + 1, x - 2, need_weights=False)[0]


def test_each_projection_of_cross_attention_sees_its_own_input():
    torch.manual_seed(0)
    model, x = Crossing().double(), torch.randn(4, 5, 16, dtype=torch.float64)
    sums = SquareSums()
    activations(model, find_sites(model), Calibration([x]), sums)
    for start, expected in ((0, x), (16, 3 * x.flip(1) + 1), (32, x - 2)):
        assert torch.allclose(sums.sums[("attention.in_proj_weight", start, start + 16)], expected.reshape(-1, 16).square().sum(0))


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return self.used(x)


@pytest.mark.parametrize("criterion", sorted(set(CRITERIA) - {"magnitude"}))
def test_a_layer_that_calibration_does_not_reach_is_masked_by_magnitude_and_says_so(criterion):
    proposal = sparsity.propose(Unused(), criterion=criterion, calibration=[torch.randn(3, 16)])
    used, unused = proposal.decisions
    assert used.rule == "SG301" and used.criterion == criterion
    assert unused.rule == "SG313" and unused.criterion == "magnitude" and "no calibration batch" in unused.text


def test_first_order_follows_the_gradient_of_a_given_loss():
    torch.manual_seed(0)
    model = nn.Linear(8, 8, bias=False)
    x = torch.randn(32, 8)
    x[:, [0, 1, 4, 5]] *= 100  # large inputs, but the loss looks at their weights' outputs alone
    scale = torch.zeros(8)
    scale[3] = 1.0
    proposal = sparsity.propose(model, criterion="first-order", calibration=[x], loss=lambda outputs, batch: (outputs * scale).sum())
    gradient = x.sum(0)
    expected = magnitude_mask((model.weight.detach()[3] * gradient)[None])
    assert torch.equal(proposal.masks["weight"][3], expected[0])


def test_the_first_order_projection_estimates_all_outputs_derivatives():
    torch.manual_seed(0)
    from pipeline.sparsity.criteria.first_order import gradient_squares, random_projection

    model, x = nn.Linear(8, 4, bias=False).double(), torch.randn(6, 8, dtype=torch.float64)
    found = torch.stack(
        [gradient_squares(model, find_sites(model), Calibration([x]), random_projection(seed))["weight"] for seed in range(600)]
    ).mean(0)
    assert torch.allclose(found, x.square().sum(0).expand(4, 8), rtol=0.35)


def test_later_layers_see_what_sparsegpt_has_pruned_before():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8)).double()
    x = torch.randn(64, 16, dtype=torch.float64)
    proposal = sparsity.propose(model, criterion="sparsegpt", calibration=[x[:32], x[32:]])
    pruned = F.relu(F.linear(x, proposal.weights["0.weight"], model[0].bias))
    grams = Grams(torch.float64)
    grams("2.weight", slice(0, 8), pruned)
    mask, updated = sparsegpt(model[2].weight.detach(), grams.grams[(0, 8)])
    assert torch.equal(proposal.masks["2.weight"], mask)
    assert torch.allclose(proposal.weights["2.weight"], updated, rtol=1e-6, atol=1e-8)
