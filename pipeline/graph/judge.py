"""The facts of one operand as the operator reads it: its pattern, and what it would be in another form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline import pattern
from pipeline.errors import InputError
from pipeline.graph.arithmetic import minus_zero_point
from pipeline.graph.moves import Move
from pipeline.graph.near import Near, near_miss
from pipeline.graph.tensors import NoValuesError
from pipeline.graph.trace import Sighting
from pipeline.graph.values import Leaf, TooLargeError, Value, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

RELEASE_BYTES = 1 << 26
"""Bytes read of mapped files before their pages are given back."""


class Pages:
    """Gives back the memory of mapped files after every `RELEASE_BYTES` that were read of them."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release
        self._read = 0

    def reader(self, value: Value) -> pattern.Reader:
        """A function that reads blocks of a value."""

        def read(block: pattern.Block) -> np.ndarray:
            found = value.read(block)
            self._read += found.nbytes
            if self._read > RELEASE_BYTES:
                self._read = 0
                self._release()
            return found

        return read


@dataclass
class Judgement:
    """What is known of one operand."""

    sighting: Sighting
    value: Value | None = None
    axis: int | None = None
    segment: int | None = None
    facts: pattern.Facts | None = None
    other_axes: list[int] = field(default_factory=list)
    before: pattern.Facts | None = None
    """Facts of the values before QuantizeLinear."""
    near: Near | None = None
    """Where it is not 2:4: whether only tiny values keep it from being."""
    trouble: str = ""
    """Why there are no facts."""
    invalid: str = ""
    """Why the operand is not a matrix product of a weight at all."""

    @property
    def two_four(self) -> bool | None:
        """None only where the values are not known."""
        return None if self.facts is None else self.facts.two_four


def judge(sighting: Sighting, pages: Pages) -> Judgement:
    """Judge one operand."""
    result = Judgement(sighting)
    const = sighting.const
    if const is None:
        return result
    if const.trouble:
        result.trouble = const.trouble
        return result
    try:
        value = _as_read(sighting, const.load())
        result.axis = sighting.operand.axis(sighting.call, value.shape)
    except (NoValuesError, TooLargeError) as error:
        result.trouble = str(error)
        return result
    except ValueError as error:
        result.invalid = str(error)
        return result
    result.value = value
    result.segment = _segment(sighting, value.shape)
    result.facts = survey(value, result.axis, result.segment, pages)
    axes = [axis for axis in range(len(value.shape)) if axis != result.axis and value.shape[axis] > 1]
    result.other_axes = [axis for axis in axes if holds(value, axis, pages)]
    if result.facts.violating:
        result.near = near_miss(pages.reader(value), value.shape, result.axis)
    if const.before is not None and const.before.shape == value.shape:
        result.before = survey(const.before, result.axis, result.segment, pages)
    return result


def _as_read(sighting: Sighting, value: Value) -> Value:
    """The operand relative to its zero point, where the operator has one."""
    zero = sighting.operand.zero
    call = sighting.call
    if zero is None or not call.given(zero):
        return value
    const = call.inputs[zero]
    if const is None or const.trouble:
        raise NoValuesError("its zero point is not constant")
    offset = const.load()
    shape = sighting.operator.channel(sighting.operand, offset.shape, value.shape) if sighting.operator.channel else offset.shape
    return minus_zero_point(value, offset.moved(Move.reshape(offset.shape, shape)) if shape != offset.shape else offset)


def _segment(sighting: Sighting, shape: tuple[int, ...]) -> int | None:
    """A grouped transposed convolution sums over a `group`-th part of its first dimension."""
    if sighting.operator.family != "convtranspose":
        return None
    group = sighting.call.number("group", 1)
    if group < 1 or shape[0] % group:
        raise InputError(f"{shape[0]} input channels cannot be cut into {group} groups", where=sighting.call.node.name)
    return shape[0] // group


def survey(value: Value, axis: int, segment: int | None, pages: Pages) -> pattern.Facts:
    """The pattern's facts, read in the order in which the values lie in memory, located in the operand's own coordinates."""
    turned, order = in_memory_order(value)
    facts = pattern.survey_blocks(pages.reader(turned), turned.shape, order.index(axis), segment=segment)
    facts.located = [tuple(spot[order.index(dim)] for dim in range(len(spot))) for spot in facts.located]
    return facts


def holds(value: Value, axis: int, pages: Pages) -> bool:
    """Whether the operand is 2:4 along another axis; stops at the first block that is not."""
    turned, order = in_memory_order(value)
    return pattern.holds(pages.reader(turned), turned.shape, order.index(axis))


def in_memory_order(value: Value) -> tuple[Value, tuple[int, ...]]:
    """The value with its dimensions in the order in which its largest stored tensor lies in memory, and that order."""
    largest: Leaf = max(leaves(value), key=lambda leaf: leaf.view.size)
    order = tuple(range(len(value.shape)))
    if largest.view.ndim == len(order) and largest.seen == len(largest.moves):
        order = tuple(sorted(order, key=lambda dim: -abs(largest.view.strides[dim])))
    return (value, order) if order == tuple(range(len(order))) else (value.moved(Move.transpose(value.shape, order)), order)
