"""ONNX models that look 2:4 to an eye and are not eligible, each for one reason."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HALF = TensorProto.FLOAT16


def two_four(*shape, axis, dtype=np.float16):
    """Values of which two in every four along an axis are zero."""
    values = np.arange(1, np.prod(shape) + 1).reshape(shape) % 7 + 1
    mask = np.moveaxis(np.ones(shape, bool), axis, -1)
    mask[..., 0::4] = mask[..., 3::4] = False
    return (values * np.moveaxis(mask, -1, axis)).astype(dtype)


def save(path, nodes, held, *, x, elem=HALF, out=None):
    inputs = [helper.make_tensor_value_info("x", elem, x)]
    outputs = [helper.make_tensor_value_info(nodes[-1].output[0], elem, out)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(array, name) for name, array in held.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def matmul(path, *, axis, dtype=np.float16):
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "proj")
    return save(path, [node], {"w": two_four(64, 32, axis=axis, dtype=dtype)}, x=["n", 64], elem=elem)


def grouped(path):
    node = helper.make_node("Conv", ["x", "w"], ["y"], "grouped", group=4)
    return save(path, [node], {"w": two_four(32, 8, 1, 1, axis=1)}, x=["n", 32, 8, 8])


def int8_without_output_quantizer(path):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], "xq"),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"], "xd"),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"], "wd"),
        helper.make_node("MatMul", ["xd", "wd"], ["y"], "proj"),
    ]
    held = {"s": np.float32(0.1), "z": np.int8(0), "w": two_four(64, 32, axis=0, dtype=np.int8)}
    return save(path, nodes, {name: np.asarray(value) for name, value in held.items()}, x=["n", 64], elem=TensorProto.FLOAT)


def small_network(path, seed=0):
    """Dense weights: a first Conv of 3 channels, two wide ones and a Gemm."""
    rng = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "stem", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "w2"], ["b"], "wide", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["b", "w3"], ["c"], "wider", pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("Gemm", ["e", "w4"], ["y"], "head", transB=1),
    ]
    shapes = {"w1": (32, 3, 3, 3), "w2": (64, 32, 3, 3), "w3": (128, 64, 3, 3), "w4": (8, 128)}
    held = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    return save(path, nodes, held, x=["n", 3, 32, 32])
