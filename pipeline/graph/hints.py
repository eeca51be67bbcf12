"""Hints: predictions on selection, and facts worth a look. None of them changes eligibility."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from pipeline.graph.targets import covers

if TYPE_CHECKING:
    from pipeline.graph.rules import Case

ENOUGH_CHANNELS = 256
DLA_CHANNELS = 64
ORIN = (8, 7)
ADA = (8, 9)


def _channels(case: Case) -> tuple[int, int, int] | None:
    """Input channels, output channels and kernel size of the weight; None where they are not known."""
    value, axis = case.one.value, case.one.axis
    if value is None or axis is None:
        return None
    family = case.one.sighting.operator.family
    if family in ("conv", "convtranspose"):
        return value.shape[axis], value.shape[1 - axis], prod(value.shape[2:])
    if len(value.shape) < 2:
        return None
    other = axis + 1 if axis + 1 < len(value.shape) else axis - 1
    return value.shape[axis], value.shape[other], 1


def _few(case: Case) -> str:
    found = _channels(case)
    if found is None or case.one.two_four is not True:
        return ""
    inputs, outputs, kernel = found
    if inputs * kernel >= ENOUGH_CHANNELS and outputs >= ENOUGH_CHANNELS:
        return ""
    return f"{inputs} in x {outputs} out" + (f", kernel of {kernel}" if kernel > 1 else "") + ": prediction: a dense tactic wins"


def _multiple(case: Case) -> str:
    found = _channels(case)
    if found is None or case.one.two_four is not True or (found[0] % 128 == 0 and found[1] % 128 == 0):
        return ""
    return f"{found[0]} in x {found[1]} out are not multiples of 128"


def _batch(case: Case) -> str:
    batch = case.one.sighting.batch
    return f"the model's batch is fixed at {batch}" if batch is not None and batch < 8 and case.one.two_four else ""


def _int8_output(case: Case) -> str:
    product = case.one.sighting.operator.family in ("gemm", "matmul")
    if not product or case.kind != "int8" or covers(">=10.0", case.aim.tensorrt) is False or case.one.sighting.quantized_output:
        return ""
    return "no QuantizeLinear behind it: prediction: it stays dense"


def _old_qdq(case: Case) -> str:
    return "Q/DQ weights: prediction: a dense tactic is chosen" if case.kind == "int8" and covers("8.x", case.aim.tensorrt) else ""


def _fp8_ada(case: Case) -> str:
    return "prediction: eligible, not chosen" if case.kind == "float8_e4m3fn" and case.aim.sm == ADA else ""


def _negative(case: Case) -> str:
    facts = case.one.facts
    return f"{facts.negative_zeros} values are -0.0" if facts and facts.negative_zeros else ""


def _nonfinite(case: Case) -> str:
    facts = case.one.facts
    return f"{facts.nonfinite} values are NaN or infinite" if facts and facts.nonfinite else ""


def _other_axis(case: Case) -> str:
    if case.one.two_four is not False or not case.one.other_axes:
        return ""
    axes = " and ".join(str(axis) for axis in case.one.other_axes)
    return f"it is 2:4 along axis {axes}, but this operator sums over axis {case.one.axis}: transposed before export?"


def _rounding(case: Case) -> str:
    before, after = case.one.before, case.one.facts
    if before is None or after is None or before.two_four == after.two_four:
        return ""
    return "2:4 only after rounding, not in float" if after.two_four else "2:4 in float, not after rounding"


def _near(case: Case) -> str:
    return case.one.near.text if case.one.near else ""


def _dla(case: Case) -> str:
    found = _channels(case)
    if case.aim.sm != ORIN or found is None or case.one.sighting.operator.family != "conv" or case.kind != "int8":
        return ""
    return f"{found[0]} input channels: " + ("the DLA takes it" if found[0] > DLA_CHANNELS else "too few for the DLA")


HINT_TABLE: dict[str, Callable[[Case], str]] = {
    "SG201": _few,
    "SG202": _multiple,
    "SG203": _batch,
    "SG204": _int8_output,
    "SG205": _old_qdq,
    "SG206": _fp8_ada,
    "SG207": _negative,
    "SG208": _nonfinite,
    "SG209": _other_axis,
    "SG210": _near,
    "SG211": _rounding,
    "SG212": _dla,
}
"""Hint -> its text for an operand; empty where it does not concern it."""
