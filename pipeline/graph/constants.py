"""How a constant goes on through an operator: one function for each operator that moves, casts or scales a weight."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from pipeline.graph import arithmetic, quantizing
from pipeline.graph.dtypes import ELEMENT_TYPES, is_integer, numpy_type
from pipeline.graph.moves import Move
from pipeline.graph.scopes import Call, Const
from pipeline.graph.values import NotFoldedError, Value, leaves, refuse_spread

Moves = Callable[[Call, tuple[int, ...]], list[Move]]
MOST_INTS = 1 << 16


def ints(call: Call, position: int) -> tuple[int, ...] | None:
    """A constant input as integers (a shape, axes, starts); None where it is not given.

    Raises:
        NotFoldedError: it is given but not constant, or far too long.
    """
    if not call.given(position):
        return None
    value = call.value(position)
    if value is None or value.size > MOST_INTS:
        raise NotFoldedError(f"its input {call.node.input[position]!r} is not constant")
    return tuple(int(number) for number in value.array().reshape(-1).tolist())


def _transpose(call: Call, shape: tuple[int, ...]) -> list[Move]:
    return [Move.transpose(shape, call.numbers("perm") or tuple(reversed(range(len(shape)))))]


def _reshape(call: Call, shape: tuple[int, ...]) -> list[Move]:
    wanted = list(ints(call, 1) or call.numbers("shape") or ())
    if not call.number("allowzero", 0):
        wanted = [shape[dim] if size == 0 else size for dim, size in enumerate(wanted)]
    if wanted.count(-1) == 1:
        rest = -prod(wanted)
        wanted[wanted.index(-1)] = prod(shape) // rest if rest else 0
    if min(wanted, default=0) < 0 or prod(wanted) != prod(shape):
        raise ValueError(f"cannot reshape {list(shape)} to {wanted}")
    return [Move.reshape(shape, tuple(wanted))]


def _flatten(call: Call, shape: tuple[int, ...]) -> list[Move]:
    axis = call.number("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [Move.reshape(shape, (prod(shape[:axis]), prod(shape[axis:])))]


def _squeeze(call: Call, shape: tuple[int, ...]) -> list[Move]:
    axes = ints(call, 1) if call.given(1) else call.numbers("axes")
    gone = {axis % len(shape) for axis in axes} if axes is not None else {dim for dim, size in enumerate(shape) if size == 1}
    return [Move.reshape(shape, tuple(size for dim, size in enumerate(shape) if dim not in gone))]


def _unsqueeze(call: Call, shape: tuple[int, ...]) -> list[Move]:
    axes = (ints(call, 1) if call.given(1) else call.numbers("axes")) or ()
    rank = len(shape) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(shape)
    return [Move.reshape(shape, tuple(1 if dim in new else next(rest) for dim in range(rank)))]


def _expand(call: Call, shape: tuple[int, ...]) -> list[Move]:
    import numpy as np

    wanted = np.broadcast_shapes(shape, ints(call, 1) or ())
    refuse_spread(wanted, prod(shape))
    return [Move.broadcast(shape, wanted)]


def _slice(call: Call, shape: tuple[int, ...]) -> list[Move]:
    if call.given(1):
        starts, ends, axes, steps = (ints(call, at) for at in (1, 2, 3, 4))
    else:
        starts, ends, axes, steps = call.numbers("starts"), call.numbers("ends"), call.numbers("axes"), None
    if starts is None or ends is None:
        raise ValueError("Slice without starts or ends")
    axes = axes or tuple(range(len(starts)))
    steps = steps or (1,) * len(starts)
    at, by, after = [0] * len(shape), [1] * len(shape), list(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        chosen = range(*slice(start, end, step).indices(shape[axis]))
        at[axis], by[axis], after[axis] = chosen.start, step, len(chosen)
    return [Move.cut(shape, tuple(at), tuple(by), tuple(after))]


MOVES: dict[str, Moves] = {
    "Identity": lambda call, shape: [],
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Slice": _slice,
}
"""Operators that only move elements of their first input."""


def follow(call: Call) -> list[Const]:
    """The constants that a node makes of its constant inputs, one for each output.

    Raises:
        NotFoldedError: the operator is not one of those that are followed.
        ValueError: the node is not valid (shapes that do not fit, say).
    """
    op = call.node.op_type
    if call.node.domain in ("", "ai.onnx"):
        if op in MOVES:
            return [_moved(call)]
        if op in FOLLOWED:
            return FOLLOWED[op](call)
    elif call.node.domain == "trt" and op in TRT_FOLLOWED:
        return TRT_FOLLOWED[op](call)
    raise NotFoldedError(f"it is computed by {op}, which is not followed")


def _moved(call: Call) -> Const:
    const = call.first()
    value, before = const.load(), const.before
    for move in MOVES[call.node.op_type](call, value.shape):
        value = value.moved(move)
        before = before.moved(move) if before is not None else None
    return const.through(call.node.op_type, value, before=before)


def _cast(call: Call) -> list[Const]:
    const = call.first()
    if call.node.op_type == "CastLike":
        other = call.value(1)
        if other is None:
            raise NotFoldedError("the type that CastLike casts to is not constant")
        dtype = other.dtype
    else:
        number = call.number("to", 0)
        if number not in ELEMENT_TYPES:
            raise NotFoldedError(f"element type {number} is not one that is read")
        dtype = numpy_type(ELEMENT_TYPES[number].name)
    if dtype.name == "float8_e8m0fnu":
        raise NotFoldedError("a cast to float8_e8m0 is not followed")
    saturate = bool(call.number("saturate", 1))
    before = const.before
    if before is not None and not is_integer(dtype):
        before = arithmetic.cast(before, dtype, saturate=saturate)
    return [const.through(call.node.op_type, arithmetic.cast(const.load(), dtype, saturate=saturate), before=before)]


def _elementwise(call: Call) -> list[Const]:
    op = call.node.op_type
    consts = [const for const in call.inputs if const is not None]
    values = [const.load() for const in consts]
    main = weight_among(consts, values)
    value = arithmetic.elementwise(op, values)
    before = None
    if any(const.before is not None for const in consts):
        before = arithmetic.elementwise(
            op, [const.before if const.before is not None else v for const, v in zip(consts, values, strict=True)]
        )
    return [consts[main].through(op, value, before=before)]


def weight_among(consts: list[Const], values: list[Value]) -> int:
    """Which of several constants is the weight: the one with most stored values, a mask of zeros and ones last."""

    def rank(at: int) -> tuple[bool, int]:
        stored = sum(leaf.view.size for leaf in leaves(values[at]))
        return not _is_mask(values[at]), stored if consts[at].name else 0

    real = [at for at in range(len(consts)) if values[at].size > 1] or [0]
    return real[0] if len(real) == 1 else max(real, key=rank)


def _is_mask(value: Value) -> bool:
    import numpy as np

    if value.size < 2 or 0 in value.shape:
        return False
    head = tuple(slice(0, min(size, 64 if dim == len(value.shape) - 1 else 4)) for dim, size in enumerate(value.shape))
    sample = value.read(head).astype(np.float32)
    return bool(((sample == 0) | (sample == 1)).all())


def _split(call: Call) -> list[Const]:
    const = call.first()
    value = const.load()
    axis = call.number("axis", 0) % len(value.shape)
    outputs = len(call.node.output)
    parts = ints(call, 1) or call.numbers("split")
    if parts is None:
        each = -(-value.shape[axis] // outputs)
        parts = tuple(min(each, value.shape[axis] - each * at) for at in range(outputs))
    made, start = [], 0
    for size in parts:
        starts = tuple(start if dim == axis else 0 for dim in range(len(value.shape)))
        after = tuple(size if dim == axis else n for dim, n in enumerate(value.shape))
        move = Move.cut(value.shape, starts, (1,) * len(after), after)
        before = const.before.moved(move) if const.before is not None else None
        made.append(const.through("Split", value.moved(move), before=before))
        start += size
    return made


FOLLOWED: dict[str, Callable[[Call], list[Const]]] = {
    "Cast": _cast,
    "CastLike": _cast,
    **dict.fromkeys(arithmetic.ELEMENTWISE, _elementwise),
    "QuantizeLinear": quantizing.quantize,
    "DequantizeLinear": quantizing.dequantize,
    "Split": _split,
}
TRT_FOLLOWED: dict[str, Callable[[Call], list[Const]]] = {
    "TRT_FP8QuantizeLinear": quantizing.fp8_quantize,
    "TRT_FP8DequantizeLinear": quantizing.fp8_dequantize,
}
