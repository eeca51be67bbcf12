"""Small ONNX graphs, good and bad, that TensorRT-RTX's real parser and builder get: written here, no network needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
RNG = np.random.default_rng(7)
Profile = dict[str, dict[str, list[int]]]


@dataclass
class Graph:
    """One case: how the file is written, its profiles, and words of the error it must give (None: it builds)."""

    write: Callable[[Path], None]
    profiles: list[Profile] = field(default_factory=list)
    error: str | None = None
    precision: str = "fp32"
    options: dict[str, Any] = field(default_factory=dict)


def weight(*shape: int, kind: type = np.float32) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.1).astype(kind)


def save(
    path: Path, nodes: list[Any], inputs: dict[str, list[Any]], outputs: list[str], weights: dict[str, Any], kind: int = F32, **more: Any
) -> None:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [value if isinstance(value, TensorProto) else numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 22), helper.make_opsetid("our.domain", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(path), **more)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), name=f"{kind}_{outputs.split()[0]}", **attributes)


def conv(
    kind: type = np.float32, *, channels: int = 32, outputs: int = 64, size: int = 3, group: int = 1, batch: Any = 1
) -> Callable[[Path], None]:
    element = F16 if kind is np.float16 else F32

    def write(path: Path) -> None:
        save(
            path,
            [node("Conv", "x w b", "y", pads=[size // 2] * 4, group=group)],
            {"x": [batch, channels, 16, 16]},
            ["y"],
            {"w": weight(outputs, channels // group, size, size, kind=kind), "b": weight(outputs, kind=kind)},
            element,
        )

    return write


def simple(
    nodes: list[Any], inputs: dict[str, list[Any]], outputs: list[str], weights: dict[str, Any], kind: int = F32
) -> Callable[[Path], None]:
    return lambda path: save(path, nodes, inputs, outputs, weights, kind)


def bf16_matmul(path: Path) -> None:
    raw = helper.make_tensor("w", BF16, [64, 64], weight(64, 64).ravel().tolist())
    save(path, [node("MatMul", "x w", "y")], {"x": [8, 64]}, ["y"], {"w": raw}, BF16)


def int8_conv(path: Path) -> None:
    scales = {"s": np.float32(0.05), "z": np.int8(0), "ws": np.full(64, 0.01, np.float32), "wz": np.zeros(64, np.int8)}
    save(
        path,
        [
            node("QuantizeLinear", "x s z", "xq"),
            node("DequantizeLinear", "xq s z", "xd"),
            node("QuantizeLinear", "w ws wz", "wq", axis=0),
            node("DequantizeLinear", "wq ws wz", "wd", axis=0),
            node("Conv", "xd wd", "y", pads=[1, 1, 1, 1]),
        ],
        {"x": [1, 32, 16, 16]},
        ["y"],
        {"w": weight(64, 32, 3, 3), **{name: np.array(value) for name, value in scales.items()}},
    )


def attention(path: Path) -> None:
    save(
        path,
        [
            node("MatMul", "x wq", "q"),
            node("MatMul", "x wk", "k"),
            node("MatMul", "x wv", "v"),
            node("Transpose", "k", "kt", perm=[0, 2, 1]),
            node("MatMul", "q kt", "s"),
            node("Softmax", "s", "p", axis=-1),
            node("MatMul", "p v", "a"),
            node("LayerNormalization", "a g b", "y", axis=-1),
        ],
        {"x": ["batch", 16, 64]},
        ["y"],
        {**{name: weight(64, 64) for name in ("wq", "wk", "wv")}, "g": np.ones(64, np.float32), "b": np.zeros(64, np.float32)},
    )


def external(path: Path, *, keep: bool = True) -> None:
    name = f"{path.stem}.data"
    save(
        path,
        [node("MatMul", "x w", "y")],
        {"x": [8, 64]},
        ["y"],
        {"w": weight(64, 64)},
        save_as_external_data=True,
        location=name,
        size_threshold=0,
    )
    if not keep:
        (path.parent / name).unlink()


def truncated(path: Path) -> None:
    conv()(path)
    path.write_bytes(path.read_bytes()[:-500])


def profile(name: str, *shapes: list[int]) -> list[Profile]:
    return [{name: dict(zip(("min", "opt", "max"), shapes, strict=True))}]


BATCH = profile("x", [1, 32, 16, 16], [4, 32, 16, 16], [8, 32, 16, 16])
MLP = {"w": weight(64, 128), "v": weight(32, 64)}
GOOD: dict[str, Graph] = {
    "conv 3x3": Graph(conv()),
    "conv 1x1": Graph(conv(size=1)),
    "conv fp16, dynamic batch": Graph(conv(np.float16, batch="batch"), BATCH, precision="fp16"),
    "conv of 512 channels": Graph(conv(np.float16, channels=512, outputs=512), precision="fp16"),
    "grouped conv": Graph(conv(group=4)),
    "depthwise conv": Graph(conv(channels=32, outputs=32, group=32)),
    "conv, batch normalisation, relu": Graph(
        simple(
            [node("Conv", "x w", "h", pads=[1, 1, 1, 1]), node("BatchNormalization", "h g b m v", "n"), node("Relu", "n", "y")],
            {"x": [1, 32, 8, 8]},
            ["y"],
            {"w": weight(64, 32, 3, 3), **{name: np.abs(weight(64)) + 0.5 for name in "gbmv"}},
        )
    ),
    "residual": Graph(
        simple(
            [node("Conv", "x w", "h", pads=[1, 1, 1, 1]), node("Add", "h x", "a"), node("Relu", "a", "y")],
            {"x": [1, 32, 8, 8]},
            ["y"],
            {"w": weight(32, 32, 3, 3)},
        )
    ),
    "two branches, concatenated": Graph(
        simple(
            [node("Conv", "x w", "h"), node("Conv", "x v", "k"), node("Concat", "h k", "y", axis=1)],
            {"x": [1, 32, 8, 8]},
            ["y"],
            {"w": weight(32, 32, 1, 1), "v": weight(16, 32, 1, 1)},
        )
    ),
    "transposed conv": Graph(simple([node("ConvTranspose", "x w", "y")], {"x": [1, 32, 8, 8]}, ["y"], {"w": weight(32, 16, 2, 2)})),
    "gemm, weight transposed": Graph(simple([node("Gemm", "x w", "y", transB=1)], {"x": [8, 128]}, ["y"], {"w": weight(64, 128)})),
    "gemm, weight as it stands": Graph(simple([node("Gemm", "x w", "y")], {"x": [8, 128]}, ["y"], {"w": weight(128, 64)})),
    "matmul of three axes": Graph(simple([node("MatMul", "x w", "y")], {"x": [2, 16, 128]}, ["y"], {"w": weight(128, 64)})),
    "mlp with gelu": Graph(
        simple(
            [node("Gemm", "x w", "h", transB=1), node("Gelu", "h", "a"), node("Gemm", "a v", "y", transB=1)], {"x": [8, 128]}, ["y"], MLP
        )
    ),
    "attention, dynamic batch": Graph(attention, profile("x", [1, 16, 64], [2, 16, 64], [4, 16, 64])),
    "bf16 matmul": Graph(bf16_matmul, precision="bf16"),
    "int8 with Q/DQ": Graph(int8_conv),
    "two inputs": Graph(
        simple([node("MatMul", "a w", "h"), node("Add", "h b", "y")], {"a": [4, 64], "b": [4, 64]}, ["y"], {"w": weight(64, 64)})
    ),
    "two outputs": Graph(
        simple([node("MatMul", "x w", "y"), node("Softmax", "y", "p", axis=-1)], {"x": [4, 64]}, ["y", "p"], {"w": weight(64, 64)})
    ),
    "pool and classifier": Graph(
        simple(
            [node("GlobalAveragePool", "x", "p"), node("Flatten", "p", "f"), node("Gemm", "f w", "y", transB=1)],
            {"x": [2, 64, 8, 8]},
            ["y"],
            {"w": weight(16, 64)},
        )
    ),
    "weights in another file": Graph(external),
}


def shape_input(path: Path) -> None:
    values = [helper.make_tensor_value_info("x", F32, [4, 8]), helper.make_tensor_value_info("to", TensorProto.INT64, [2])]
    graph = helper.make_graph([node("Reshape", "x to", "y")], "g", values, [helper.make_tensor_value_info("y", F32, ["a", "b"])], [])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), str(path))


BAD: dict[str, Graph] = {
    "an operator of another domain": Graph(
        lambda path: save(path, [helper.make_node("Mine", ["x"], ["y"], name="mine", domain="our.domain")], {"x": [4]}, ["y"], {}),
        error="mine",
    ),
    "two types in one product": Graph(
        simple([node("MatMul", "x w", "y")], {"x": [4, 64]}, ["y"], {"w": weight(64, 64, kind=np.float16)}), error="MatMul_y"
    ),
    "a file that was cut": Graph(truncated, error="not a readable ONNX model"),
    "an empty file": Graph(lambda path: path.write_bytes(b"") and None, error="no layers"),
    "weights that are missing": Graph(lambda path: external(path, keep=False), error="cannot parse"),
    "a dynamic batch without a profile": Graph(conv(batch="batch"), error="need an optimization profile"),
    "a profile of another input": Graph(conv(batch="batch"), [{"z": BATCH[0]["x"]}], error="no such input"),
    "a profile whose min is above its opt": Graph(
        conv(batch="batch"), profile("x", [8, 32, 16, 16], [4, 32, 16, 16], [8, 32, 16, 16]), error="does not hold"
    ),
    "an fp32 product for Turing, which has none": Graph(
        simple([node("Gemm", "x w", "y", transB=1)], {"x": [8, 128]}, ["y"], {"w": weight(64, 128)}),
        error="TensorRT built no engine (node Gemm_y)",
        options={"compute_capabilities": ["7.5"]},
    ),
    "an input whose values are a shape": Graph(
        shape_input, profile("to", [2], [2], [2]), error="the values of to are a shape, and build.profiles gives shapes alone"
    ),
    "a compute capability that it does not know": Graph(conv(), error="builds nothing for", options={"compute_capabilities": ["9.0"]}),
}
