"""Which operators multiply by a weight, which of their inputs it is, and along which axis they sum.

Reduction axes: Conv as TensorRT's Developer Guide 8.x (Sparsity) documents it; Gemm and MatMul from their definitions
(onnx/docs/Operators.md); ConvTranspose sums over its first dimension by definition, in `group` segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.graph.scopes import Call

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """One input of an operator that can hold a weight."""

    position: int
    data: int
    """The input that the weight is multiplied with."""
    axis: Callable[[Call, Shape], int]
    """Reduction axis of the weight's shape; ValueError where the shape does not fit the operator."""
    zero: int | None = None
    """Input with the weight's zero point."""
    left: bool = False
    """The weight stands on the left of a matrix product."""


@dataclass(frozen=True)
class Operator:
    """One operator that is judged."""

    family: str
    """`conv`, `convtranspose`, `gemm`, `matmul` or `einsum`; siblings are of one family."""
    operands: tuple[Operand, ...]
    channel: Callable[[Operand, Shape, Shape], Shape] | None = None
    """Shape in which a zero point broadcasts to the weight: (operand, its shape, the weight's shape)."""
    parsed: bool = True
    """Whether TensorRT's ONNX parser knows the operator (docs/operators.md of onnx-tensorrt)."""


def _rank(least: int, axis: int) -> Callable[[Call, Shape], int]:
    def find(call: Call, shape: Shape) -> int:
        if len(shape) < least:
            raise ValueError(f"a weight of {len(shape)} dimensions where {call.node.op_type} needs at least {least}")
        return axis % len(shape)

    return find


def _gemm(flag: str, plain: int) -> Callable[[Call, Shape], int]:
    def find(call: Call, shape: Shape) -> int:
        if len(shape) != 2:
            raise ValueError(f"Gemm of a weight of {len(shape)} dimensions")
        return 1 - plain if call.number(flag, 0) else plain

    return find


def _matmul(left: bool) -> Callable[[Call, Shape], int]:
    def find(call: Call, shape: Shape) -> int:
        if not shape:
            raise ValueError("MatMul of a scalar")
        return len(shape) - 1 if left or len(shape) == 1 else len(shape) - 2

    return find


def _einsum(position: int) -> Callable[[Call, Shape], int]:
    def find(call: Call, shape: Shape) -> int:
        equation = call.attribute("equation")
        return einsum_axis(equation.s.decode(errors="replace") if equation else "", position, len(shape))

    return find


def einsum_axis(equation: str, position: int, rank: int) -> int:
    """The axis of operand `position` (of `rank` dimensions) that an equation sums over, where it is a matrix product.

    Raises:
        ValueError: it is none: not two operands, an index twice in one operand, or not exactly one summed index that both share.
    """
    left, arrow, output = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != 2:
        raise ValueError(f"Einsum {equation!r} has {len(terms)} operands")
    labels = [term.replace("...", "") for term in terms]
    if not arrow:
        output = "".join(sorted(label for label in set("".join(labels)) if "".join(labels).count(label) == 1))
    if any(len(set(term)) != len(term) for term in labels):
        raise ValueError(f"Einsum {equation!r} takes a diagonal")
    summed = [set(term) - set(output) for term in labels]
    if summed[0] != summed[1] or len(summed[0]) != 1:
        raise ValueError(f"Einsum {equation!r} does not sum over exactly one shared index")
    (label,) = summed[0]
    term = terms[position]
    head, dots, tail = term.partition("...")
    if len(labels[position]) > rank or (not dots and len(labels[position]) != rank):
        raise ValueError(f"Einsum {equation!r} does not fit an operand of {rank} dimensions")
    return head.index(label) if label in head else rank - len(tail) + tail.index(label)


def _zero_of_conv(operand: Operand, zero: Shape, weight: Shape) -> Shape:
    return (*zero, *(1,) * (len(weight) - 1)) if len(zero) == 1 else zero


def _zero_of_matmul(operand: Operand, zero: Shape, weight: Shape) -> Shape:
    return (*zero, 1) if operand.left and len(zero) == 1 and zero != (1,) and len(weight) > 1 else zero


_MATMUL = (Operand(1, 0, _matmul(False)), Operand(0, 1, _matmul(True), left=True))

OPERATORS: dict[str, Operator] = {
    "Conv": Operator("conv", (Operand(1, 0, _rank(3, 1)),)),
    "ConvTranspose": Operator("convtranspose", (Operand(1, 0, _rank(3, 0)),)),
    "Gemm": Operator("gemm", (Operand(1, 0, _gemm("transB", 0)), Operand(0, 1, _gemm("transA", 1), left=True))),
    "MatMul": Operator("matmul", _MATMUL),
    "Einsum": Operator("einsum", (Operand(1, 0, _einsum(1)), Operand(0, 1, _einsum(0), left=True))),
    "QLinearConv": Operator("conv", (Operand(3, 0, _rank(3, 1), zero=5),), _zero_of_conv, parsed=False),
    "ConvInteger": Operator("conv", (Operand(1, 0, _rank(3, 1), zero=3),), _zero_of_conv, parsed=False),
    "QLinearMatMul": Operator(
        "matmul",
        (Operand(3, 0, _matmul(False), zero=5), Operand(0, 3, _matmul(True), zero=2, left=True)),
        _zero_of_matmul,
        parsed=False,
    ),
    "MatMulInteger": Operator(
        "matmul",
        (Operand(1, 0, _matmul(False), zero=3), Operand(0, 1, _matmul(True), zero=2, left=True)),
        _zero_of_matmul,
        parsed=False,
    ),
}
"""By operator type in the standard's own domain. The first operand is the one named where no operand is constant."""
