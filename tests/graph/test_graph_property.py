"""Random graphs of moves, casts, scalings and Q/DQ around a weight, against brute force on what onnx folds."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from math import prod
from pathlib import Path

import graph_zoo as zoo
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as h

from pipeline import graph
from pipeline.errors import InputError
from pipeline.records.check import Target

FLOATS = {T.FLOAT: np.float32, T.FLOAT16: np.float16, T.DOUBLE: np.float64}


class Way:
    """Draws one operator after the other, keeping track of the shape and type that stand at the end."""

    def __init__(self, draw, weight: np.ndarray) -> None:
        self.draw = draw
        self.shape: tuple[int, ...] = weight.shape
        self.kind = T.FLOAT
        self.built = zoo.Built([], [zoo.init("w", weight)], "w")

    def constant(self, array) -> str:
        name = f"c{len(self.built.initializers)}"
        self.built.initializers.append(zoo.init(name, array))
        return name

    def node(self, op: str, *inputs: str, **attributes) -> None:
        out = f"v{len(self.built.nodes)}"
        self.built.nodes.append(h.make_node(op, [self.built.output, *inputs], [out], **attributes))
        self.built.output = out

    def transpose(self) -> None:
        perm = list(self.draw(st.permutations(range(len(self.shape)))))
        self.node("Transpose", perm=perm)
        self.shape = tuple(self.shape[dim] for dim in perm)

    def reshape(self) -> None:
        factors = self.draw(st.permutations(_factors(prod(self.shape))))
        cuts = sorted(self.draw(st.lists(st.integers(0, len(factors)), min_size=1, max_size=3)))
        edges = [0, *cuts, len(factors)]
        shape = [prod(factors[a:b]) for a, b in pairwise(edges)]
        self.shape = tuple(shape)
        wild = self.draw(st.integers(-1, len(shape) - 1))
        self.node("Reshape", self.constant(np.array([-1 if dim == wild else size for dim, size in enumerate(shape)])))

    def unsqueeze_squeeze(self) -> None:
        axis = self.draw(st.integers(-len(self.shape) - 1, len(self.shape)))
        self.node("Unsqueeze", self.constant(np.array([axis])))
        if self.draw(st.booleans()):
            self.node("Squeeze", self.constant(np.array([axis])))
        else:
            at = axis % (len(self.shape) + 1)
            self.shape = (*self.shape[:at], 1, *self.shape[at:])

    def cast(self) -> None:
        self.kind = self.draw(st.sampled_from(sorted(FLOATS)))
        self.node("Cast", to=self.kind)

    def scale(self) -> None:
        axis = self.draw(st.integers(0, len(self.shape) - 1))
        shape = [size if dim == axis else 1 for dim, size in enumerate(self.shape)]
        self.node("Mul", self.constant(np.linspace(0.5, 2, prod(shape)).reshape(shape).astype(FLOATS[self.kind])))

    def mask(self) -> None:
        ones = (np.arange(prod(self.shape)) % self.draw(st.integers(2, 7)) != 0).reshape(self.shape)
        self.node("Mul", self.constant(ones.astype(FLOATS[self.kind])))

    def quantize(self) -> None:
        if self.kind == T.DOUBLE:
            return
        axis = self.draw(st.one_of(st.none(), st.integers(-len(self.shape), len(self.shape) - 1)))
        shape = () if axis is None else (self.shape[axis],)
        scale = self.constant(np.full(shape, self.draw(st.sampled_from([0.004, 0.02, 2.0]))).astype(FLOATS[self.kind]))
        zero = self.constant(np.full(shape, self.draw(st.integers(-3, 3))).astype(np.int8))
        attributes = {} if axis is None else {"axis": axis}
        self.node("QuantizeLinear", scale, zero, **attributes)
        if self.draw(st.booleans()):
            self.transpose_quantized(scale, zero, axis)
        else:
            self.node("DequantizeLinear", scale, zero, **attributes)

    def transpose_quantized(self, scale: str, zero: str, axis: int | None) -> None:
        rank = len(self.shape)
        perm = list(self.draw(st.permutations(range(rank))))
        self.node("Transpose", perm=perm)
        self.shape = tuple(self.shape[dim] for dim in perm)
        self.node("DequantizeLinear", scale, zero, **({} if axis is None else {"axis": perm.index(axis % rank)}))


def _factors(number: int) -> list[int]:
    out, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            out.append(divisor)
            number //= divisor
        divisor += 1
    return out or [1]


STEPS = ("transpose", "reshape", "unsqueeze_squeeze", "cast", "scale", "mask", "quantize")


@st.composite
def ways(draw):
    shape = draw(st.sampled_from([(8, 12), (4, 8, 4), (16, 4), (4, 4, 2, 2)]))
    axis, seed = draw(st.integers(0, len(shape) - 1)), draw(st.integers(0, 99))
    weight = zoo.dense(shape, seed)
    if draw(st.booleans()):
        weight = zoo.two_four(weight, axis, seed)
    way = Way(draw, weight.astype(np.float32))
    for step in draw(st.lists(st.sampled_from(STEPS), max_size=6)):
        getattr(way, step)()
    if len(way.shape) < 2:
        way.shape = (prod(way.shape) // 4, 4)
        way.node("Reshape", way.constant(np.array(way.shape)))
    return way


@settings(max_examples=60, deadline=None)
@given(ways(), st.booleans())
def test_any_way_is_judged_as_brute_force_judges_it(way, left):
    operand = zoo.fold(way.built)
    inputs = [way.built.output, "x"] if left else ["x", way.built.output]
    model = zoo.model_of([*way.built.nodes, h.make_node("MatMul", inputs, ["y"])], way.built.initializers)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "m.onnx"
        onnx.save(model, path)
        (layer,) = graph.check(path, Target()).layers
        axis = operand.ndim - 1 if left else operand.ndim - 2
        truth = zoo.brute_force(operand, axis)
        assert layer.shape == list(operand.shape) == list(way.shape)
        assert (layer.axis, layer.two_four, layer.groups_violating) == (axis, truth.two_four, truth.violating)
        assert (layer.zero_fraction, layer.negative_zeros) == (truth.zeros / operand.size, truth.negative_zeros)
        _prune_and_judge_again(way, path, axis)


def _prune_and_judge_again(way: Way, path: Path, axis: int) -> None:
    """Pruning makes any way 2:4, keeping every value that stays."""
    out = path.with_name("out.onnx")
    (done,) = graph.prune(path, out).layers
    if done.action.value == "refused":
        assert done.shape is not None
        assert done.shape[axis] % 4
        return
    pruned = onnx.load(out)
    nodes = [node for node in pruned.graph.node if node.op_type != "MatMul"]
    operand = zoo.fold(zoo.Built(nodes, list(pruned.graph.initializer), way.built.output))
    before = zoo.fold(way.built)
    assert zoo.brute_force(operand, axis).two_four
    assert np.array_equal(operand[operand != 0], before[operand != 0])


def test_node_names_need_no_weights(tmp_path):
    way = zoo.transposed(zoo.swap_last)(zoo.dense((8, 4), 0).astype(np.float32), 0)
    model = zoo.model_of([*way.nodes, h.make_node("MatMul", ["x", way.output], ["y"], name="product")], way.initializers)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    assert graph.node_names(tmp_path / "m.onnx") == ["t", "product"]


def test_a_file_in_a_missing_folder_is_an_input_error(tmp_path):
    with pytest.raises(InputError):
        graph.node_names(tmp_path / "gone" / "m.onnx")
