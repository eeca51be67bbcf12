"""Which stored element makes which element of an operand, and what must be stored there for the operand to be zero."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.graph.judge import Judgement
from pipeline.graph.tensors import Stored
from pipeline.graph.values import Computed, Leaf, Value, leaves

NARROW_BITS = 8

# Arithmetic that maps zero to zero, with the inputs of which that is true; None: any of them.
_KEEPS_ZERO: dict[str, tuple[int, ...] | None] = {
    "Cast": None,
    "Mul": None,
    "Div": (0,),
    "Neg": None,
    "Abs": None,
    "Where": (1, 2),
    "QuantizeLinear": (0,),
    "DequantizeLinear": (0,),
    "ZeroPoint": (0,),
}
_SHIFTED = {"DequantizeLinear": 2, "ZeroPoint": 1}
"""Arithmetic that subtracts a zero point: the input that holds it."""


class RefusedError(Exception):
    """The weight cannot be changed in place; the message says why."""


@dataclass(frozen=True)
class Target:
    """The stored tensor behind an operand, in the operand's own layout."""

    leaf: Leaf
    stored: Stored
    zero: Value | None
    """What stands for zero, element by element; None: 0."""


def target(one: Judgement, value: Value) -> Target:
    """Find the stored tensor whose elements decide which elements of the operand are zero.

    Args:
        one: The operand.
        value: Its values, possibly transposed.

    Raises:
        RefusedError: there is none, several, or zero in it does not make zero in the operand.
    """
    const = one.sighting.const
    if const is None or one.facts is None:
        raise RefusedError(one.trouble or "the weight is not constant")
    if const.computed:
        raise RefusedError(f"its values are computed from others ({' > '.join(const.path)})")
    if const.sparse:
        raise RefusedError("it is stored as a sparse tensor; store it dense first")
    found = [leaf for leaf in leaves(value) if leaf.stored is not None and leaf.stored.name == const.name]
    if len(found) != 1:
        raise RefusedError("its values are computed from others" if not found else "it is multiplied with itself")
    (leaf,) = found
    stored = leaf.stored
    assert stored is not None
    if leaf.bits < NARROW_BITS:
        raise RefusedError(f"{leaf.dtype.name} has another hardware pattern than 2:4")
    if stored.file is None:
        raise RefusedError("it is stored as a list of numbers; store it as raw_data or external data first")
    return Target(leaf, stored, _zero(value, leaf))


def _zero(value: Value, leaf: Leaf) -> Value | None:
    """Walk from the operand down to the leaf."""
    zero: Value | None = None
    while value is not leaf:
        if not isinstance(value, Computed):
            raise RefusedError("its values are computed from others")
        if zero is not None and value.name != "QuantizeLinear":
            raise RefusedError(f"{value.name} stands between the stored weight and its zero point")
        holding = [at for at, part in enumerate(value.inputs) if leaf in leaves(part)]
        allowed = _KEEPS_ZERO.get(value.name, ())
        if value.name not in _KEEPS_ZERO or len(holding) != 1 or (allowed is not None and holding[0] not in allowed):
            raise RefusedError(f"zero in the file does not make zero behind {value.name}")
        if value.name == "Where" and value.inputs[3 - holding[0]].array().astype("float32").any():
            raise RefusedError("Where takes some of its values from another tensor")
        offset = _SHIFTED.get(value.name)
        zero = value.inputs[offset] if offset is not None and offset < len(value.inputs) else None
        value = value.inputs[holding[0]]
    return zero
