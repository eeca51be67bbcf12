"""Constants behind operators that `constants` does not follow lazily: computed at once, by onnx's own reference evaluator.

Only operators whose output size is known beforehand are computed, and only up to `MOST_ELEMENTS`, so that no file can make
the check run out of memory or time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from pipeline.graph.constants import weight_among
from pipeline.graph.scopes import Call, Const
from pipeline.graph.values import NotFoldedError, of_array

if TYPE_CHECKING:
    import numpy as np
    from onnx import NodeProto

MOST_ELEMENTS = 1 << 26

Sizes = Callable[[Call, list["np.ndarray"]], int]


def _broadcast(call: Call, inputs: list[np.ndarray]) -> int:
    import numpy as np

    return prod(np.broadcast_shapes(*(array.shape for array in inputs)))


def _total(call: Call, inputs: list[np.ndarray]) -> int:
    return sum(array.size for array in inputs)


def _gathered(call: Call, inputs: list[np.ndarray]) -> int:
    data, indices = inputs[:2]
    axis = call.number("axis", 0) % max(data.ndim, 1)
    return indices.size * (data.size // max(data.shape[axis], 1) if data.ndim else 1)


def _tiled(call: Call, inputs: list[np.ndarray]) -> int:
    return prod(int(times) * size for times, size in zip(inputs[1].reshape(-1).tolist(), inputs[0].shape, strict=True))


def _of_shape(call: Call, inputs: list[np.ndarray]) -> int:
    return prod(int(size) for size in inputs[0].reshape(-1).tolist())


def _padded(call: Call, inputs: list[np.ndarray]) -> int:
    if len(inputs) < 2 or call.given(3):
        return MOST_ELEMENTS + 1
    pads = [int(pad) for pad in inputs[1].reshape(-1).tolist()]
    shape = inputs[0].shape
    if len(pads) != 2 * len(shape):
        return MOST_ELEMENTS + 1
    return prod(max(size + pads[dim] + pads[dim + len(shape)], 0) for dim, size in enumerate(shape))


SIZES: dict[str, Sizes] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Sum", "Mean", "Where"), _broadcast),
    **dict.fromkeys(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor"), _broadcast),
    **dict.fromkeys(("Neg", "Abs", "Sqrt", "Exp", "Log", "Reciprocal", "Sign", "Floor", "Ceil", "Round", "Not", "Relu", "Tanh"), _total),
    **dict.fromkeys(
        ("Sigmoid", "Erf", "Clip", "Concat", "GatherElements", "ScatterElements", "ScatterND", "Trilu", "Shape", "Size"), _total
    ),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceL2", "ReduceProd", "ReverseSequence"), _total),
    **dict.fromkeys(("BatchNormalization", "Softmax", "CumSum"), _total),
    "Gather": _gathered,
    "Tile": _tiled,
    "ConstantOfShape": _of_shape,
    "Pad": _padded,
}
"""Operators that are computed, with the size of what they make."""


def fold(call: Call) -> list[Const]:
    """Compute a node on constants.

    Raises:
        NotFoldedError: the operator is not one of `SIZES`, its result would be too large, or the evaluator refuses it.
    """
    op = call.node.op_type
    if op not in SIZES or call.node.domain not in ("", "ai.onnx"):
        raise NotFoldedError(f"it is computed by {op}, which is not followed")
    consts = [const for const in call.inputs if const is not None]
    values = [const.load() for const in consts]
    if sum(value.size for value in values) > MOST_ELEMENTS:
        raise NotFoldedError(f"it is computed by {op} from more than {MOST_ELEMENTS} values")
    arrays = [value.array() for value in values]
    if SIZES[op](call, arrays) > MOST_ELEMENTS:
        raise NotFoldedError(f"{op} would make more than {MOST_ELEMENTS} values of it")
    main = consts[weight_among(consts, values)]
    made = _evaluate(call, arrays)
    return [main.through(op, of_array(array), before=None, computed=True) for array in made]


def _evaluate(call: Call, arrays: list[np.ndarray]) -> list[np.ndarray]:
    import numpy as np
    from onnx import ModelProto, TypeProto, ValueInfoProto, helper
    from onnx.reference import ReferenceEvaluator

    node = _resolved(call)
    feeds = dict(zip((name for name in node.input if name), arrays, strict=False))
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in feeds.items()
    ]
    outputs = [ValueInfoProto(name=name, type=TypeProto()) for name in node.output if name]
    graph = helper.make_graph([node], "fold", inputs, outputs)
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", call.opset)])
    try:
        with np.errstate(all="ignore"):
            made = ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:  # noqa: BLE001 (the evaluator raises whatever numpy does on input that does not fit)
        raise NotFoldedError(f"{call.node.op_type} cannot be computed: {error}") from None
    if not all(isinstance(array, np.ndarray | np.generic) for array in made):
        raise NotFoldedError(f"{call.node.op_type} makes something that is no tensor")
    return [np.asarray(array) for array in made]


def _resolved(call: Call) -> NodeProto:
    """The node with references to a function's attributes replaced by what the caller gave."""
    from onnx import NodeProto

    node = NodeProto()
    node.CopyFrom(call.node)
    del node.attribute[:]
    for attribute in call.node.attribute:
        found = call.attribute(attribute.name)
        if found is not None:
            copy = node.attribute.add()
            copy.CopyFrom(found)
            copy.name = attribute.name
    return node
