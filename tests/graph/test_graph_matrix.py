"""Every way from a stored weight to an operator, judged against brute force on the operand that onnx itself folds."""

from __future__ import annotations

import graph_zoo as zoo
import numpy as np
import onnx
import pytest

from pipeline import graph
from pipeline.records.check import CheckedLayer, Target

ALL_OPS_WITH = ("direct", "transpose-rotated", "dq-int8", "mask")
BFLOAT16_WITH = ("direct", "transpose-rotated", "cast-from-float32", "mask")
ALL_PATHS_WITH = ("conv2d", "matmul", "gemm-transB")

# Ways that need an operand of a certain form.
ONLY_WITH = {"unsqueeze": {"conv-1x1"}, "flatten": {"matmul", "gemm-transB"}, "expand": {"conv2d", "gemm-transB"}}

CASES = sorted(
    {(op, path, "float32") for op in ALL_PATHS_WITH for path in zoo.PATHS if op in ONLY_WITH.get(path, {op})}
    | {("conv2d", path, "float16") for path in zoo.PATHS if path not in ("unsqueeze", "flatten")}
    | {(op, path, "float32") for op in zoo.OPS for path in ALL_OPS_WITH}
    | {("conv-1x1", "unsqueeze", "float32")}
    | {
        (op, path, "bfloat16")
        for op in ("conv2d", "matmul-batched")
        for path in ("direct", "transpose-rotated", "cast-from-float32", "mask")
    }
    | {(op, "direct", "float64") for op in ("matmul", "gemm-A", "convtranspose")}
)


def check_one(model: onnx.ModelProto, folder) -> CheckedLayer:
    onnx.save(model, folder / "m.onnx")
    report = graph.check(folder / "m.onnx", Target())
    (layer,) = report.layers
    return layer


def test_the_matrix_is_large_enough():
    assert sum(len(zoo.patterns(zoo.OPS[op].axis, len(zoo.OPS[op].shape))) for op, _, _ in CASES) >= 200


@pytest.mark.parametrize(("op_name", "path_name", "dtype"), CASES)
def test_the_operand_is_judged_as_brute_force_judges_it(op_name, path_name, dtype, tmp_path):
    op, path = zoo.OPS[op_name], zoo.PATHS[path_name]
    answers = set()
    for seed, pattern in enumerate(zoo.patterns(op.axis, len(op.shape))):
        model, built = zoo.build(op, path, zoo.weight_of(op, pattern, zoo.DTYPES[dtype], seed), seed)
        operand = zoo.fold(built)
        truth = zoo.brute_force(operand, op.axis, op.segments)
        layer = check_one(model, tmp_path)
        assert (layer.op, layer.operand, layer.axis) == (op.op, op.position, op.axis)
        assert layer.shape == list(operand.shape)
        assert layer.dtype == operand.dtype.name
        assert layer.two_four is truth.two_four, pattern
        assert layer.groups_violating == truth.violating
        assert layer.zero_fraction == truth.zeros / operand.size
        assert (layer.negative_zeros, layer.nonfinite) == (truth.negative_zeros, truth.nonfinite)
        others = [axis for axis in range(operand.ndim) if axis != op.axis and operand.shape[axis] > 1]
        assert layer.two_four_on_other_axes == [axis for axis in others if zoo.brute_force(operand, axis).two_four]
        for spot in layer.located:
            group = [[*spot[: op.axis], spot[op.axis] + at, *spot[op.axis + 1 :]] for at in range(4)]
            assert sum(operand[tuple(at)] != 0 for at in group) > 2
        answers.add(layer.two_four)
    # A case that could only ever say one thing would test nothing (3 channels, groups of 6: never 2:4).
    assert answers == {True, False} or (answers == {False} and (op.shape[op.axis] // op.segments) % 4)


INTEGER_OPS = {
    "QLinearConv": zoo.Op("QLinearConv", (4, 8, 3, 3), 1, position=3),
    "ConvInteger": zoo.Op("ConvInteger", (4, 8, 3, 3), 1),
    "QLinearMatMul": zoo.Op("QLinearMatMul", (8, 4), 0, position=3),
    "QLinearMatMul-left": zoo.Op("QLinearMatMul", (4, 8), 1, position=0),
    "MatMulInteger": zoo.Op("MatMulInteger", (8, 4), 0),
    "MatMulInteger-left": zoo.Op("MatMulInteger", (4, 8), 1, position=0),
    "MatMulInteger-batched": zoo.Op("MatMulInteger", (2, 8, 4), 1),
}


def integer_model(op: zoo.Op, stored: np.ndarray, zero: np.ndarray | None) -> onnx.ModelProto:
    from onnx import helper as h

    inits = [zoo.init("w", stored), zoo.init("s", np.float32(0.1)), zoo.init("xz", np.zeros((), np.int8))]
    if zero is not None:
        inits.append(zoo.init("z", zero))
    z = "z" if zero is not None else ""
    inputs = {
        "QLinearConv": ["x", "s", "xz", "w", "s", z, "s", "xz"],
        "ConvInteger": ["x", "w", "xz", z],
        "QLinearMatMul": ["x", "s", "xz", "w", "s", z, "s", "xz"] if op.position == 3 else ["w", "s", z, "x", "s", "xz", "s", "xz"],
        "MatMulInteger": ["x", "w", "xz", z] if op.position == 1 else ["w", "x", z, "xz"],
    }[op.op]
    return zoo.model_of([h.make_node(op.op, inputs, ["y"], name="op")], inits)


@pytest.mark.parametrize("name", INTEGER_OPS)
@pytest.mark.parametrize("zero_point", ["none", "tensor", "channel"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_integer_operators_are_judged_after_their_zero_point(name, zero_point, kind, tmp_path):
    op = INTEGER_OPS[name]
    if zero_point == "none" and op.op.startswith("QLinear"):
        zero_point = "tensor"  # these operators demand one
    channel = (0 if op.position == 0 else len(op.shape) - 1) if "MatMul" in op.op else 0
    count = op.shape[channel]
    answers = set()
    for seed, pattern in enumerate(zoo.patterns(op.axis, len(op.shape))):
        levels = np.sign(zoo.weight_of(op, pattern, np.dtype(np.float64), seed)).astype(np.int32)
        zero = {"none": None, "tensor": np.int32(5), "channel": np.arange(1, count + 1)}[zero_point]
        spread = np.zeros((), np.int32) if zero is None else np.asarray(zero)
        if spread.ndim:
            spread = spread.reshape([count if dim == channel else 1 for dim in range(len(op.shape))])
        stored = levels + spread if kind == "int8" or zero is not None else np.abs(levels)
        operand = stored - spread
        layer = check_one(integer_model(op, stored.astype(kind), None if zero is None else np.asarray(zero).astype(kind)), tmp_path)
        truth = zoo.brute_force(operand, op.axis)
        assert (layer.two_four, layer.groups_violating) == (truth.two_four, truth.violating)
        assert (layer.operand, layer.axis) == (op.position, op.axis)
        answers.add(layer.two_four)
    assert answers == {True, False}
