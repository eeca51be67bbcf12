"""Permuting channels keeps every model's function, reports every layer, and refuses rather than breaks."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pipeline import codes, sparsity
from pipeline.sparsity.permutation.follow import follow
from pipeline.sparsity.permutation.permute import RULES
from pipeline.sparsity.permutation.rewrite import complete, move
from pipeline.sparsity.permutation.spaces import solve
from pipeline.sparsity.sites import find_sites


def shuffled_difference(model: nn.Module, x: torch.Tensor, seed: int = 0) -> tuple[float, int]:
    """Shuffle every space at random, and compare outputs in float64; also the number of tensors that moved."""
    import numpy as np

    model = copy.deepcopy(model).double().eval()
    solution = solve(follow(model, (x.double(),), {}, RULES).channels)
    random, moves = np.random.default_rng(seed), {}
    for space in solution.spaces:
        moves |= dict(zip(space.channels.tolist(), random.permutation(space.channels).tolist(), strict=True))
    with torch.no_grad():
        before = model(x.double())
        changed = move(model, solution, complete(solution, moves))
        after = model(x.double())
    return float((before - after).abs().max() / before.abs().max()), len(changed)


def awake(model: nn.Module) -> nn.Module:
    """Norms and zero-initialised layers that tell channels apart, so that a wrong move cannot hide."""
    for module in model.modules():
        for name in ("running_mean", "running_var"):
            if isinstance(getattr(module, name, None), torch.Tensor):
                getattr(module, name).uniform_(0.5, 1.5)
    for parameter in model.parameters():
        if parameter.ndim == 1 or not parameter.detach().any():
            nn.init.uniform_(parameter, 0.5, 1.5)
    return model


class Residual(nn.Module):
    def __init__(self, groups: int = 1):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.a = nn.Conv2d(16, 32, 1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.grouped = nn.Conv2d(32, 32, 3, padding=1, groups=groups)
        self.group_norm = nn.GroupNorm(4, 32)
        self.prelu = nn.PReLU(32)
        self.b = nn.Conv2d(32, 16, 1)
        self.gate = nn.Conv2d(16, 16, 1)
        self.scale = nn.Parameter(torch.rand(16, 1, 1))
        self.head = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = self.norm(self.stem(x)).relu_()
        y = self.prelu(self.group_norm(self.grouped(self.depthwise(self.a(x)))))
        x = x + self.b(y) * self.scale
        x = x * torch.sigmoid(self.gate(x.mean((2, 3), keepdim=True)))
        return self.head(F.max_pool2d(x, 2).flatten(1))


class Concatenated(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv1d(4, 16, 3), nn.Conv1d(4, 8, 3)
        self.after = nn.Conv1d(24, 32, 1)
        self.up = nn.ConvTranspose1d(16, 8, 2)
        self.last = nn.Conv1d(8, 4, 1)

    def forward(self, x):
        y = self.after(torch.cat([self.one(x), self.two(x)], 1))
        left, right = y.chunk(2, dim=1)
        return self.last(self.up(left * right.sigmoid()))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 32)
        self.position = nn.Parameter(torch.rand(1, 6, 32))
        self.first = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.second = nn.LayerNorm(32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.head = nn.Linear(32, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        y = self.embed(x.long()) + self.position
        z = self.first(y)
        y = y + self.attention(z, z, z, need_weights=False)[0]
        y = y + self.down(F.gelu(self.up(self.second(y))))
        return self.head(y)


class HandMade(nn.Module):
    """Attention written out, with an in-projection per tensor, and a reshape that shuffles channels between groups."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
        self.mix = nn.Linear(16, 16)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (layer(x).reshape(b, t, 2, 8).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = ((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
        y = self.o(y).reshape(b, t, 4, 4).transpose(2, 3).reshape(b, t, c)
        return self.mix(torch.flip(y, [2]))


CASES = {
    "residual": (lambda: Residual(), (1, 3, 8, 8)),
    "grouped": (lambda: Residual(groups=4), (1, 3, 8, 8)),
    "concatenated": (lambda: Concatenated(), (1, 4, 12)),
    "attention": (lambda: Attention(), (1, 6)),
    "hand-made attention": (lambda: HandMade(), (1, 5, 16)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", [1, 3])
def test_shuffling_all_free_channels_keeps_the_function(case, batch):
    torch.manual_seed(0)
    make, shape = CASES[case]
    x = torch.randint(0, 20, (batch, *shape[1:])) if case == "attention" else torch.randn(batch, *shape[1:])
    difference, changed = shuffled_difference(awake(make()), x)
    assert difference < 1e-12
    assert changed >= 4


@pytest.mark.parametrize("case", CASES)
def test_every_layer_is_permuted_or_refused_with_its_reason(case):
    torch.manual_seed(0)
    make, shape = CASES[case]
    model = awake(make())
    x = torch.randint(0, 20, shape) if case == "attention" else torch.randn(shape)
    before = copy.deepcopy(model)
    report = sparsity.permute(model, x, seconds=0.2, seed=1)
    assert [one.layer.weight for one in report.layers] == [site.key for site in find_sites(model)]
    assert all(codes.get(one.rule) and one.text for one in report.layers)
    assert report.difference is None or report.difference < 1e-10
    with torch.no_grad():
        assert torch.allclose(before.eval()(x), model.eval()(x), rtol=1e-4, atol=1e-5)
    permuted = [one for one in report.layers if one.outcome == "permuted"]
    assert permuted and sum(one.kept_after - one.kept_before for one in permuted) > 0


def test_reasons_name_what_fixes_the_order():
    torch.manual_seed(0)
    report = sparsity.permute(awake(Residual()), torch.randn(1, 3, 8, 8), seconds=0.1)
    found = {one.layer.id: one for one in report.layers}
    assert found["stem"].rule == "SG306" and found["depthwise"].rule == "SG307"
    assert found["head"].rule in ("SG323", "SG325") and "channel" in found["head"].text
    assert found["b"].outcome == "permuted"


class Sorting(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return self.two(torch.cumsum(self.one(x), -1))


def test_an_operator_without_a_rule_keeps_the_order_and_is_named():
    report = sparsity.permute(Sorting(), torch.randn(2, 16), seconds=0.1)
    assert [one.outcome for one in report.layers] == ["refused", "refused"]
    assert "the model's input" in report.layers[0].text and "cumsum" in report.layers[1].text
    assert report.difference is None


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(16, 16)

    def forward(self, x):
        return self.one(x) if float(x.sum()) > 0 else x


def test_a_model_that_cannot_be_captured_is_left_alone():
    model = Branching()
    before = model.one.weight.detach().clone()
    report = sparsity.permute(model, torch.randn(2, 16), seconds=0.1)
    assert report.layers[0].rule == "SG327" and torch.equal(before, model.one.weight)


def test_a_wrong_rule_is_found_out_and_put_back(monkeypatch):
    # without a rule of its own cumsum fixes the order; treated like a pointwise operator it would break the function
    monkeypatch.setitem(RULES, "cumsum", RULES["relu"])
    torch.manual_seed(0)
    model = Sorting()
    before = copy.deepcopy(model.state_dict())
    report = sparsity.permute(model, torch.randn(2, 16), seconds=0.1)
    assert report.layers[1].rule == "SG328" and report.difference > 1e-6
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_excluded_layers_do_not_count():
    torch.manual_seed(0)
    report = sparsity.permute(awake(Attention()), torch.randint(0, 20, (1, 6)), seconds=0.1, include=["down"])
    assert {one.layer.id for one in report.layers if one.outcome == "permuted"} == {"down"}


def _torchvision(name):
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    return awake(getattr(torchvision.models, name)())


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small"])
def test_torchvision_models_keep_their_function(name):
    torchvision_model_keeps_its_function(name, seconds=0.5)


@pytest.mark.soak
@pytest.mark.parametrize(
    "name", ["resnet50", "densenet121", "convnext_tiny", "vit_b_16", "swin_t", "resnext50_32x4d", "shufflenet_v2_x1_0"]
)
def test_large_torchvision_models_keep_their_function(name):
    torchvision_model_keeps_its_function(name, seconds=5.0)


def torchvision_model_keeps_its_function(name, seconds):
    model, x = _torchvision(name), torch.randn(1, 3, 224, 224)
    report = sparsity.permute(model, x, seconds=seconds)
    assert report.precision == "float64" and report.difference < 1e-10
    assert [one.layer.weight for one in report.layers] == [site.key for site in find_sites(model)]
    first = report.layers[0] if report.layers[0].layer.kind != "Parameter" else report.layers[1]
    assert first is not None
    masked = [one for one in report.layers if one.kept_before is not None]
    permuted = [one for one in masked if one.outcome == "permuted"]
    assert len(permuted) >= 0.5 * len(masked)
    assert all(one.text and codes.get(one.rule) for one in report.layers)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "efficientnet_b0", "regnety_002", "mixer_s32_224", "convnextv2_atto"])
def test_timm_models_keep_their_function(name):
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    model = awake(timm.create_model(name, pretrained=False))
    report = sparsity.permute(model, torch.randn(1, 3, 224, 224), seconds=2.0)
    assert report.difference is not None and report.difference < 1e-10
    assert [one.layer.weight for one in report.layers] == [site.key for site in find_sites(model)]
