"""Small real ONNX models and requests for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pipeline.builders.base import ArmRequest

K, C = 16, 32


def two_four(weight: np.ndarray) -> np.ndarray:
    """Zero the two smallest of every four along the last axis."""
    groups = weight.reshape(-1, 4)
    order = np.argsort(np.abs(groups), axis=1)
    np.put_along_axis(groups, order[:, :2], 0, axis=1)
    return groups.reshape(weight.shape)


def mlp(
    path: Path,
    *,
    name: str = "x",
    batch: int | str = "batch",
    sparse: bool = True,
    external: bool = False,
    kind: type = np.float32,
    seed: int = 0,
) -> Path:
    """x[batch, 32] -> Gemm 64 -> Relu -> Gemm 16 -> y[batch, 16]; weights 2:4 when `sparse`."""
    rng = np.random.default_rng(seed)
    weights = {"w1": rng.standard_normal((64, C)), "w2": rng.standard_normal((K, 64))}
    tensors = [numpy_helper.from_array((two_four(w) if sparse else w).astype(kind), key) for key, w in weights.items()]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", [name, "w1"], ["h"], name="body/fc1", transB=1),
            helper.make_node("Relu", ["h"], ["a"], name="body/act"),
            helper.make_node("Gemm", ["a", "w2"], ["y"], name="head/fc2", transB=1),
        ],
        "g",
        [helper.make_tensor_value_info(name, element, [batch, C])],
        [helper.make_tensor_value_info("y", element, [batch, K])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, str(path), save_as_external_data=external, location=f"{path.name}.data", size_threshold=0)
    return path


def batch_profile(name: str = "x", low: int = 1, opt: int = 8, high: int = 16) -> dict[str, dict[str, list[int]]]:
    return {name: {"min": [low, C], "opt": [opt, C], "max": [high, C]}}


def request(
    onnx_file: Path,
    arm: str = "sparse",
    repeat: int = 1,
    *,
    precision: str = "fp32",
    profiles: list[dict[str, dict[str, list[int]]]] | None = None,
) -> ArmRequest:
    return ArmRequest(
        arm=arm,
        repeat=repeat,
        onnx=onnx_file,
        onnx_arm="dense" if arm == "dense" else "sparse",
        sparse_weights=arm == "sparse",
        precision=precision,
        profiles=[batch_profile()] if profiles is None else profiles,
    )


FEEDS = {"x": np.random.default_rng(1).standard_normal((4, C)).astype(np.float32)}
