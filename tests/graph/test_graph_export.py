"""Export keeps names that lead back to modules, in every precision; parity notices what differs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from pipeline import graph
from pipeline.errors import StageError
from pipeline.graph.export import export_model
from pipeline.graph.identity import join
from pipeline.graph.parity import compare
from pipeline.records.check import Target
from pipeline.records.layers import WeightedLayer

OPSET = {"fp32": 20, "fp16": 20, "bf16": 22}


class Net(nn.Module):
    """A convolution with batch norm, a Linear on 3-D input (exported transposed), one on 2-D input, and a shared Linear."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.tokens = nn.Linear(16, 16)
        self.shared = nn.Linear(16, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
        y = self.shared(torch.relu(self.shared(torch.relu(self.tokens(y)))))
        return self.head(y.mean(1))


@pytest.fixture(scope="module", params=OPSET)
def exported(request, tmp_path_factory):
    torch.manual_seed(0)
    model = Net().eval()
    model.norm.running_mean.normal_()
    path = tmp_path_factory.mktemp(request.param) / "net.onnx"
    x = {"x": torch.randn(2, 4, 6, 6)}
    export_model(model, x, path, outputs=["y"], precision=request.param, opset=OPSET[request.param], batch={"min": 1, "max": 16})
    return model, path, request.param


def layers(model: nn.Module) -> list[WeightedLayer]:
    return [
        WeightedLayer(id=name, modules=[name], weight=f"{name}.weight", shape=list(module.weight.shape), kind=type(module).__name__)
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    ]


def test_every_layer_is_joined_to_the_nodes_that_read_it(exported):
    model, path, _ = exported
    joined = {item.layer.id: item for item in join(path, layers(model), graph.check(path, Target()))}
    assert {name: len(item.operands) for name, item in joined.items()} == {"conv": 1, "tokens": 1, "shared": 2, "head": 1}
    assert {op.op for op in joined["conv"].operands} == {"Conv"}
    assert {op.axis for op in joined["conv"].operands} == {1}


def test_inputs_and_outputs_stay_float32_and_the_batch_is_dynamic(exported):
    _, path, _ = exported
    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        assert value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_the_file_computes_what_torch_computes(exported, batch):
    model, path, precision = exported
    x = np.random.default_rng(batch).normal(size=(batch, 4, 6, 6)).astype(np.float32)
    result = compare(
        path, lambda feeds: {"y": model(torch.from_numpy(feeds["x"])).detach().numpy()}, {"x": x}, arm="sparse", precision=precision
    )
    assert result.passed and result.batch == batch and result.repeatable
    assert (result.computed == "float32 copy") == (precision == "bf16")


def test_parity_notices_other_weights(exported):
    model, path, precision = exported
    x = np.random.default_rng(1).normal(size=(4, 4, 6, 6)).astype(np.float32)
    wrong = lambda feeds: {"y": 1.5 * model(torch.from_numpy(feeds["x"])).detach().numpy()}  # noqa: E731
    assert not compare(path, wrong, {"x": x}, arm="sparse", precision=precision).passed


def test_bf16_needs_an_opset_that_has_it(tmp_path):
    with pytest.raises(StageError, match="opset 22"):
        export_model(
            Net(),
            {"x": torch.randn(2, 4, 6, 6)},
            tmp_path / "n.onnx",
            outputs=["y"],
            precision="bf16",
            opset=20,
            batch={"min": 1, "max": 2},
        )


def test_a_model_that_cannot_be_exported_is_a_stage_error(tmp_path):
    class Branching(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if float(x.sum()) > 0 else -x

    with pytest.raises(StageError, match=r"torch\.onnx\.export failed"):
        export_model(
            Branching(),
            {"x": torch.randn(2, 3)},
            tmp_path / "n.onnx",
            outputs=["y"],
            precision="fp32",
            opset=20,
            batch={"min": 1, "max": 2},
        )


def test_a_single_batch_size_is_exported_static(tmp_path):
    path = export_model(
        nn.Linear(8, 4),
        {"x": torch.randn(3, 8)},
        tmp_path / "n.onnx",
        outputs=["y"],
        precision="fp32",
        opset=20,
        batch={"min": 3, "max": 3},
    )
    assert onnx.load(path).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3
