"""Small ONNX models around one weight, and an oracle that does not use the code under test.

The oracle folds the operand with onnx's reference evaluator and counts groups by brute force.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

OPSET, IR = 23, 11
DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "float64": np.dtype(np.float64),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}


# --- weights -------------------------------------------------------------------------------------------------------------
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def dense(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Values in +-[0.5, 1.5]: none rounds to zero."""
    r = rng(seed)
    return r.uniform(0.5, 1.5, shape) * r.choice([-1.0, 1.0], shape)


def two_four(array: np.ndarray, axis: int, seed: int) -> np.ndarray:
    """Zero two values of every group of 4 along an axis, at random places; a rest of the axis stays dense."""
    out = np.moveaxis(array.copy(), axis, -1)
    whole = out.shape[-1] // 4 * 4
    groups = out[..., :whole].reshape(-1, 4)
    drop = np.argsort(rng(seed).random(groups.shape), axis=1)[:, :2]
    np.put_along_axis(groups, drop, 0, axis=1)
    out[..., :whole] = groups.reshape(*out.shape[:-1], whole)
    return np.moveaxis(out, -1, axis).copy()


# --- what stands between the stored weight and the operator --------------------------------------------------------------
@dataclass
class Built:
    """A way from stored tensors to the operand."""

    nodes: list[onnx.NodeProto]
    initializers: list[onnx.TensorProto]
    output: str
    sparse: list[onnx.SparseTensorProto] = field(default_factory=list)


Path = Callable[[np.ndarray, int], Built]
"""(the operand wanted, seed) -> the way to it. Where the way is lossy (casts, quantization) the operand only resembles it."""


def init(name: str, array: Any) -> onnx.TensorProto:
    return nh.from_array(np.asarray(array), name)


def direct(w: np.ndarray, seed: int) -> Built:
    return Built([], [init("w", w)], "w")


def transposed(choose: Callable[[int], list[int]], explicit: bool = True) -> Path:
    def path(w: np.ndarray, seed: int) -> Built:
        perm = choose(w.ndim)
        stored = np.transpose(w, np.argsort(perm))
        node = h.make_node("Transpose", ["w"], ["t"], **({"perm": perm} if explicit else {}))
        return Built([node], [init("w", np.ascontiguousarray(stored))], "t")

    return path


def reshaped(w: np.ndarray, seed: int) -> Built:
    stored = w.reshape(-1, w.shape[-1])
    shape = [*w.shape[:-1], -1]
    return Built([h.make_node("Reshape", ["w", "s"], ["r"])], [init("w", stored), init("s", np.array(shape, np.int64))], "r")


def reshape_of_transpose(w: np.ndarray, seed: int) -> Built:
    """Transpose, then a reshape that no view can express."""
    flat = w.reshape(w.shape[0], -1)
    nodes = [h.make_node("Transpose", ["w"], ["t"]), h.make_node("Reshape", ["t", "s"], ["r"])]
    return Built(nodes, [init("w", np.ascontiguousarray(flat.T)), init("s", np.array(w.shape, np.int64))], "r")


def squeezed_all(w: np.ndarray, seed: int) -> Built:
    return Built([h.make_node("Squeeze", ["w"], ["q"])], [init("w", w[None, :, None])], "q")


def unsqueezed(w: np.ndarray, seed: int) -> Built:
    """For operands whose dimensions behind the second are 1."""
    axes = np.arange(2, w.ndim, dtype=np.int64)
    return Built([h.make_node("Unsqueeze", ["w", "a"], ["u"])], [init("w", w.reshape(w.shape[:2])), init("a", axes)], "u")


def flattened(w: np.ndarray, seed: int) -> Built:
    """For operands of two dimensions."""
    stored = w.reshape(w.shape[0], w.shape[1] // 2, 2)
    return Built([h.make_node("Flatten", ["w"], ["f"], axis=1)], [init("w", stored)], "f")


def identity(w: np.ndarray, seed: int) -> Built:
    return Built([h.make_node("Identity", ["w"], ["i"]), h.make_node("Identity", ["i"], ["j"])], [init("w", w)], "j")


def constant_node(w: np.ndarray, seed: int) -> Built:
    return Built([h.make_node("Constant", [], ["c"], value=init("a name of its own", w))], [], "c")


def constant_floats(w: np.ndarray, seed: int) -> Built:
    nodes = [
        h.make_node("Constant", [], ["c"], value_floats=[float(v) for v in w.reshape(-1)]),
        h.make_node("Constant", [], ["s"], value_ints=list(w.shape)),
        h.make_node("Reshape", ["c", "s"], ["r"]),
        h.make_node("Cast", ["r"], ["k"], to=h.np_dtype_to_tensor_dtype(w.dtype)),
    ]
    return Built(nodes, [], "k")


def cast_from(name: str) -> Path:
    def path(w: np.ndarray, seed: int) -> Built:
        return Built([h.make_node("Cast", ["w"], ["k"], to=h.np_dtype_to_tensor_dtype(w.dtype))], [init("w", w.astype(DTYPES[name]))], "k")

    return path


def cast_underflow(w: np.ndarray, seed: int) -> Built:
    """Where the weight has zeros, tiny float32 values that float16 rounds to zero stand in the file."""
    stored = np.where(w.astype(np.float32) == 0, np.float32(1e-9), w.astype(np.float32))
    nodes = [h.make_node("Cast", ["w"], ["k"], to=T.FLOAT16), h.make_node("Cast", ["k"], ["l"], to=h.np_dtype_to_tensor_dtype(w.dtype))]
    return Built(nodes, [init("w", stored)], "l")


def masked(w: np.ndarray, seed: int) -> Built:
    """Dense weight times a boolean mask that is cast: what an unfinished export leaves."""
    full = np.where(w.astype(np.float32) == 0, 1.0, w.astype(np.float32)).astype(w.dtype)
    nodes = [h.make_node("Cast", ["m"], ["mc"], to=h.np_dtype_to_tensor_dtype(w.dtype)), h.make_node("Mul", ["w", "mc"], ["wm"])]
    return Built(nodes, [init("w", full), init("m", w.astype(np.float32) != 0)], "wm")


def mask_first(w: np.ndarray, seed: int) -> Built:
    full = np.where(w.astype(np.float32) == 0, 1.0, w.astype(np.float32)).astype(w.dtype)
    return Built([h.make_node("Mul", ["m", "w"], ["wm"])], [init("w", full), init("m", (w.astype(np.float32) != 0).astype(w.dtype))], "wm")


def scaled(w: np.ndarray, seed: int) -> Built:
    scale = rng(seed).uniform(0.5, 2, (w.shape[0], *(1,) * (w.ndim - 1))).astype(w.dtype)
    return Built([h.make_node("Mul", ["w", "s"], ["ws"])], [init("w", w), init("s", scale)], "ws")


def divided(w: np.ndarray, seed: int) -> Built:
    return Built([h.make_node("Div", ["w", "s"], ["ws"])], [init("w", w), init("s", np.array(3, w.dtype))], "ws")


def selected(w: np.ndarray, seed: int) -> Built:
    full = np.where(w.astype(np.float32) == 0, 1.0, w.astype(np.float32)).astype(w.dtype)
    return Built(
        [h.make_node("Where", ["m", "w", "z"], ["wm"])],
        [init("w", full), init("m", w.astype(np.float32) != 0), init("z", np.zeros((), w.dtype))],
        "wm",
    )


def added(w: np.ndarray, seed: int) -> Built:
    """Zeros that a sum moves away, and back."""
    one = np.ones((), w.dtype)
    nodes = [h.make_node("Add", ["w", "o"], ["p"]), h.make_node("Sub", ["p", "o"], ["q"])]
    return Built(nodes, [init("w", w), init("o", one)], "q")


def split(w: np.ndarray, seed: int) -> Built:
    return Built(
        [h.make_node("Split", ["w"], ["a", "b"], axis=0, num_outputs=2)],
        [init("w", np.concatenate([dense(w.shape, seed).astype(w.dtype), w]))],
        "b",
    )


def sliced(w: np.ndarray, seed: int) -> Built:
    big = np.repeat(w, 2, axis=-1)
    names = {"st": [1], "en": [2 * w.shape[-1]], "ax": [-1], "sp": [2]}
    return Built(
        [h.make_node("Slice", ["w", *names], ["c"])], [init("w", big), *(init(k, np.array(v, np.int64)) for k, v in names.items())], "c"
    )


def reversed_slice(w: np.ndarray, seed: int) -> Built:
    names = {"st": [-1], "en": [-(10**6)], "ax": [0], "sp": [-1]}
    return Built(
        [h.make_node("Slice", ["w", *names], ["c"])],
        [init("w", w[::-1].copy()), *(init(k, np.array(v, np.int64)) for k, v in names.items())],
        "c",
    )


def expanded(w: np.ndarray, seed: int) -> Built:
    """The first slice of the first dimension repeated: for operands that sum over another."""
    return Built([h.make_node("Expand", ["w", "s"], ["e"])], [init("w", w[:1]), init("s", np.array(w.shape, np.int64))], "e")


def concatenated(w: np.ndarray, seed: int) -> Built:
    half = w.shape[0] // 2
    return Built([h.make_node("Concat", ["w", "v"], ["c"], axis=0)], [init("w", w[:half]), init("v", w[half:])], "c")


def gathered(w: np.ndarray, seed: int) -> Built:
    order = rng(seed).permutation(w.shape[0])
    return Built([h.make_node("Gather", ["w", "i"], ["g"], axis=0)], [init("w", w[np.argsort(order)]), init("i", order)], "g")


# --- quantization --------------------------------------------------------------------------------------------------------
def _scale(w: np.ndarray, axis: int | None, levels: int = 100) -> np.ndarray:
    wide = np.abs(w.astype(np.float32))
    if axis is None:
        return np.array(wide.max() / levels, np.float32)
    return (wide.max(axis=tuple(d for d in range(w.ndim) if d != axis)) / levels).astype(np.float32)


def qdq(axis: int | None = None, zero: int | None = None, kind: Any = np.int8) -> Path:
    """Float weight behind QuantizeLinear and DequantizeLinear; small third values round to zero."""

    def path(w: np.ndarray, seed: int) -> Built:
        scale = _scale(w, axis, 6 if np.dtype(kind).name == "int4" else 100).astype(w.dtype if w.dtype != np.float64 else np.float32)
        tiny = 0.3 if np.issubdtype(np.dtype(kind), np.integer) else 5e-4  # what rounds to zero
        stored = np.where(w.astype(np.float32) == 0, float(scale.min()) * tiny, w.astype(np.float32)).astype(scale.dtype)
        inits = [init("w", stored), init("s", scale)]
        extra = [] if zero is None else ["z"]
        if zero is not None:
            inits.append(init("z", np.full(scale.shape, zero).astype(kind)))
        attributes = {} if axis is None else {"axis": axis}
        more = {} if zero is not None else {"output_dtype": h.np_dtype_to_tensor_dtype(np.dtype(kind))}
        nodes = [
            h.make_node("QuantizeLinear", ["w", "s", *extra], ["q"], **attributes, **more),
            h.make_node("DequantizeLinear", ["q", "s", *extra], ["d"], **attributes),
        ]
        return Built(nodes, inits, "d")

    return path


def dequantized(kind: Any, axis: int | None = None, zero: int = 0, block: int = 0) -> Path:
    """Quantized weight in the file, behind DequantizeLinear; its zeros are stored as the zero point."""

    def path(w: np.ndarray, seed: int) -> Built:
        dtype = np.dtype(kind)
        shape: tuple[int, ...] = () if axis is None else (w.shape[axis],)
        if block:
            assert axis is not None
            shape = tuple(-(-n // block) if d == axis else n for d, n in enumerate(w.shape))
        scale = rng(seed).uniform(0.01, 0.1, shape).astype(np.float32)
        levels = np.where(
            w.astype(np.float32) == 0, 0, np.sign(w.astype(np.float32)) * (1 if dtype.name in ("int2", "float4_e2m1fn") else 3)
        )
        if dtype.name in ("uint8", "uint4", "uint2"):
            levels = np.abs(levels)
        inits = [init("w", (levels + zero).astype(dtype)), init("s", scale)]
        extra = []
        if zero:
            extra = ["z"]
            inits.append(init("z", np.full(shape, zero).astype(dtype)))
        attributes = ({} if axis is None else {"axis": axis}) | ({"block_size": block} if block else {})
        return Built([h.make_node("DequantizeLinear", ["w", "s", *extra], ["d"], **attributes)], inits, "d")

    return path


def trt_fp8(w: np.ndarray, seed: int) -> Built:
    nodes = [
        h.make_node("TRT_FP8QuantizeLinear", ["w", "s"], ["q"], domain="trt"),
        h.make_node("TRT_FP8DequantizeLinear", ["q", "s"], ["d"], domain="trt"),
    ]
    stored = np.where(w.astype(np.float32) == 0, 1e-5, w.astype(np.float32)).astype(w.dtype)
    return Built(nodes, [init("w", stored), init("s", np.array(0.05, w.dtype))], "d")


class TRT_FP8QuantizeLinear(OpRun):
    op_domain = "trt"

    def _run(self, x, scale):
        return (np.clip(x.astype(np.float32) / scale.astype(np.float32), -448, 448).astype(ml_dtypes.float8_e4m3fn),)


class TRT_FP8DequantizeLinear(OpRun):
    op_domain = "trt"

    def _run(self, x, scale):
        return ((x.astype(np.float32) * scale.astype(np.float32)).astype(scale.dtype),)


def sparse_initializer(w: np.ndarray, seed: int) -> Built:
    return Built([], [], "w", sparse=[_sparse(w, "w", linear=True)])


def sparse_value(w: np.ndarray, seed: int) -> Built:
    return Built([h.make_node("Constant", [], ["c"], sparse_value=_sparse(w, "", linear=False))], [], "c")


def _sparse(w: np.ndarray, name: str, linear: bool) -> onnx.SparseTensorProto:
    at = np.flatnonzero(w.astype(np.float32))
    values = w.reshape(-1)[at]
    indices = at.astype(np.int64) if linear else np.stack(np.unravel_index(at, w.shape), axis=1).astype(np.int64)
    return h.make_sparse_tensor(init(name, values), init("i", indices), list(w.shape))


def swap_last(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


def rotate(rank: int) -> list[int]:
    """Not its own inverse from three dimensions on, such as [3, 0, 1, 2]."""
    return [rank - 1, *range(rank - 1)]


def reverse(rank: int) -> list[int]:
    return list(reversed(range(rank)))


PATHS: dict[str, Path] = {
    "direct": direct,
    "transpose-last": transposed(swap_last),
    "transpose-rotated": transposed(rotate),
    "transpose-without-perm": transposed(reverse, explicit=False),
    "reshape": reshaped,
    "reshape-of-transpose": reshape_of_transpose,
    "squeeze": squeezed_all,
    "unsqueeze": unsqueezed,
    "flatten": flattened,
    "identity": identity,
    "constant": constant_node,
    "constant-floats": constant_floats,
    "cast-from-float32": cast_from("float32"),
    "cast-from-bfloat16": cast_from("bfloat16"),
    "cast-underflow": cast_underflow,
    "mask": masked,
    "mask-first": mask_first,
    "scale": scaled,
    "div": divided,
    "where": selected,
    "add-sub": added,
    "split": split,
    "slice": sliced,
    "slice-reversed": reversed_slice,
    "expand": expanded,
    "concat": concatenated,
    "gather": gathered,
    "qdq-tensor": qdq(),
    "qdq-channel": qdq(axis=0, zero=0),
    "qdq-last-channel": qdq(axis=-1, zero=0),
    "qdq-zero-point": qdq(zero=3),
    "qdq-uint8": qdq(zero=128, kind=np.uint8),
    "qdq-int4": qdq(zero=1, kind=ml_dtypes.int4),
    "qdq-fp8": qdq(kind=ml_dtypes.float8_e4m3fn),
    "dq-int8": dequantized(np.int8),
    "dq-int8-channel": dequantized(np.int8, axis=0),
    "dq-int8-zero-point": dequantized(np.int8, zero=7),
    "dq-uint8": dequantized(np.uint8, axis=1, zero=100),
    "dq-int8-blocked": dequantized(np.int8, axis=1, block=4),
    "dq-int8-blocked-ragged": dequantized(np.int8, axis=0, block=3),
    "dq-int4": dequantized(ml_dtypes.int4),
    "dq-uint4-blocked": dequantized(ml_dtypes.uint4, axis=1, block=2, zero=5),
    "dq-fp8": dequantized(ml_dtypes.float8_e4m3fn, axis=0),
    "dq-fp8-e5m2": dequantized(ml_dtypes.float8_e5m2),
    "dq-fp4": dequantized(ml_dtypes.float4_e2m1fn),
    "trt-fp8": trt_fp8,
    "sparse-initializer": sparse_initializer,
    "sparse-value": sparse_value,
}


# --- operators -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Op:
    """An operator with the shape of its weight and the axis it sums over, by its own definition."""

    op: str
    shape: tuple[int, ...]
    axis: int
    position: int = 1
    attributes: tuple[tuple[str, Any], ...] = ()
    count: int = 2
    segments: int = 1

    def node(self, weight: str, name: str = "op", data: str = "x") -> onnx.NodeProto:
        inputs = [data] * self.count
        inputs[self.position] = weight
        return h.make_node(self.op, inputs, ["y"], name=name, **dict(self.attributes))


OPS: dict[str, Op] = {
    "conv1d": Op("Conv", (6, 8, 3), 1),
    "conv2d": Op("Conv", (4, 8, 3, 3), 1),
    "conv-1x1": Op("Conv", (12, 8, 1, 1), 1),
    "conv3d": Op("Conv", (4, 8, 1, 3, 2), 1),
    "conv-grouped": Op("Conv", (8, 4, 3, 3), 1, attributes=(("group", 2),)),
    "conv-of-3": Op("Conv", (8, 3, 4, 4), 1),
    "convtranspose": Op("ConvTranspose", (8, 4, 3, 3), 0),
    "convtranspose-grouped": Op("ConvTranspose", (8, 4, 3, 3), 0, attributes=(("group", 2),), segments=2),
    "convtranspose-odd-groups": Op("ConvTranspose", (12, 4, 2, 2), 0, attributes=(("group", 2),), segments=2),
    "gemm": Op("Gemm", (8, 12), 0),
    "gemm-transB": Op("Gemm", (12, 8), 1, attributes=(("transB", 1),)),
    "gemm-A": Op("Gemm", (12, 8), 1, position=0),
    "gemm-A-transA": Op("Gemm", (8, 12), 0, position=0, attributes=(("transA", 1),)),
    "matmul": Op("MatMul", (8, 12), 0),
    "matmul-left": Op("MatMul", (12, 8), 1, position=0),
    "matmul-batched": Op("MatMul", (4, 8, 12), 1),
    "matmul-batched-left": Op("MatMul", (4, 12, 8), 2, position=0),
    "matmul-4d": Op("MatMul", (2, 4, 8, 4), 2),
    "einsum": Op("Einsum", (8, 12), 0, attributes=(("equation", "bij,jk->bik"),)),
    "einsum-transposed": Op("Einsum", (12, 8), 1, attributes=(("equation", "...j,kj->...k"),)),
    "einsum-left": Op("Einsum", (4, 12, 8), 2, position=0, attributes=(("equation", "bij,bjk->bik"),)),
    "einsum-implicit": Op("Einsum", (8, 12), 0, attributes=(("equation", "ij,jk"),)),
}


# --- models --------------------------------------------------------------------------------------------------------------
def model_of(
    nodes: list[onnx.NodeProto],
    initializers: list[onnx.TensorProto],
    *,
    sparse: list[onnx.SparseTensorProto] | None = None,
    functions: list[onnx.FunctionProto] | None = None,
    dtype: int = T.FLOAT,
) -> onnx.ModelProto:
    graph = h.make_graph(
        nodes,
        "g",
        [h.make_tensor_value_info("x", dtype, ["n", None, None, None])],
        [onnx.ValueInfoProto(name=name) for name in nodes[-1].output[:1]],
        initializers,
        sparse_initializer=sparse or [],
    )
    opsets = [h.make_opsetid("", OPSET), h.make_opsetid("trt", 1), h.make_opsetid("local", 1)]
    return h.make_model(graph, opset_imports=opsets, ir_version=IR, functions=functions or [])


def build(op: Op, path: Path, weight: np.ndarray, seed: int = 0) -> tuple[onnx.ModelProto, Built]:
    built = path(weight, seed)
    return model_of([*built.nodes, op.node(built.output)], built.initializers, sparse=built.sparse), built


# --- the oracle ----------------------------------------------------------------------------------------------------------
def fold(built: Built) -> np.ndarray:
    """The operand, by onnx's reference evaluator."""
    inits = [*built.initializers, *(init(sparse.values.name, _dense(sparse)) for sparse in built.sparse)]
    nodes = [_dense_constant(node) for node in built.nodes] or []
    nodes.append(h.make_node("Identity", [built.output], ["operand"]))
    graph = h.make_graph(nodes, "fold", [], [onnx.ValueInfoProto(name="operand", type=onnx.TypeProto())], inits)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", OPSET), h.make_opsetid("trt", 1)], ir_version=IR)
    with np.errstate(all="ignore"):
        return np.asarray(ReferenceEvaluator(model, new_ops=[TRT_FP8QuantizeLinear, TRT_FP8DequantizeLinear]).run(None, {})[0])


def _dense(sparse: onnx.SparseTensorProto) -> np.ndarray:
    values, indices = nh.to_array(sparse.values), nh.to_array(sparse.indices)
    out = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        out.reshape(-1)[indices] = values
    else:
        out[tuple(indices.T)] = values
    return out


def _dense_constant(node: onnx.NodeProto) -> onnx.NodeProto:
    for attribute in node.attribute:
        if attribute.name == "sparse_value":
            return h.make_node("Constant", [], list(node.output), value=init("", _dense(attribute.sparse_tensor)))
    return node


@dataclass(frozen=True)
class Truth:
    """What brute force says of an array along an axis."""

    two_four: bool
    violating: int
    zeros: int
    negative_zeros: int
    nonfinite: int


def brute_force(array: np.ndarray, axis: int, segments: int = 1) -> Truth:
    """Count in plain Python, group by group."""
    wide = array.astype(np.float64)
    rows = np.moveaxis(wide, axis, -1).reshape(-1, array.shape[axis])
    length = array.shape[axis] // segments
    violating = 0
    for row in rows.tolist():
        for start in range(0, len(row), length):
            part = row[start : start + length]
            violating += sum(sum(value != 0 for value in part[at : at + 4]) > 2 for at in range(0, length, 4))
    flat = wide.reshape(-1).tolist()
    zeros = [value for value in flat if value == 0]
    divides = length % 4 == 0
    return Truth(
        two_four=divides and violating == 0,
        violating=violating if divides else 0,
        zeros=len(zeros),
        negative_zeros=sum(np.signbit(value) for value in zeros),
        nonfinite=sum(not np.isfinite(value) for value in flat),
    )


@cache
def patterns(axis: int, rank: int) -> tuple[str, ...]:
    return ("right", "dense", "one-wrong", *(f"axis-{other}" for other in range(rank) if other != axis))


def weight_of(op: Op, pattern: str, dtype: np.dtype, seed: int) -> np.ndarray:
    """A weight for an operator: 2:4 along the right axis, along another one, nowhere, or right but for one group."""
    array = dense(op.shape, seed)
    if pattern == "right" or pattern == "one-wrong":
        array = two_four(array, op.axis, seed)
    elif pattern.startswith("axis-"):
        array = two_four(array, int(pattern[5:]), seed)
    if pattern == "one-wrong":
        spot = [0] * len(op.shape)
        for at in range(min(4, op.shape[op.axis])):
            spot[op.axis] = at
            array[tuple(spot)] = 0.75
    return array.astype(dtype)
