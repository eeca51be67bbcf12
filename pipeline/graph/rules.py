"""Evaluate the rules of `codes` for one operand: a table from rule id to the function that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.codes.rules import RULES
from pipeline.graph.hints import HINT_TABLE
from pipeline.graph.judge import Judgement
from pipeline.graph.scopes import node_name
from pipeline.graph.targets import Aim, covers
from pipeline.records.check import Outcome, RuleOutcome
from pipeline.records.rung import Rung

Answer = tuple[Outcome, str] | None
"""None: the rule does not concern this operand."""
PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN
HALVES = ("float16", "bfloat16")
EIGHTS = ("int8", "float8_e4m3fn")
NARROW = ("int4", "uint4", "int2", "uint2", "float4_e2m1fn")


@dataclass(frozen=True)
class Case:
    """One operand, its siblings and the target."""

    one: Judgement
    siblings: list[Judgement]
    aim: Aim

    @property
    def kind(self) -> str | None:
        """The type that the kernel works on: of the quantized values behind Q/DQ, else the operand's own."""
        const = self.one.sighting.const
        if const is not None and const.quantized is not None:
            return const.quantized.dtype
        return self.one.value.dtype.name if self.one.value else None

    @property
    def op(self) -> str:
        """The operator's type."""
        return self.one.sighting.call.node.op_type


def _pattern(case: Case) -> Answer:
    facts = case.one.facts
    if facts is None:
        return (UNKNOWN, f"its values are not known: {case.one.trouble}") if case.one.trouble else None
    if facts.groups is None:
        return None
    if facts.violating:
        share = facts.violating / facts.groups
        return FAIL, f"{facts.violating} of {facts.groups} groups along axis {case.one.axis} hold more than 2 non-zeros ({share:.1%})"
    return PASS, f"all {facts.groups} groups along axis {case.one.axis} hold at most 2 non-zeros"


def _multiple(case: Case) -> Answer:
    one = case.one
    if one.value is None or one.axis is None:
        return None
    size = one.segment or one.value.shape[one.axis]
    return (PASS, f"{size} is a multiple of 4") if size % 4 == 0 else (FAIL, f"the reduction dimension is {size}, no multiple of 4")


def _constant(case: Case) -> Answer:
    const = case.one.sighting.const
    if const is None:
        return FAIL, "the weight is computed from the model's inputs"
    if case.one.trouble:
        return UNKNOWN, f"the weight is constant, but its values are not known: {case.one.trouble}"
    return PASS, "the weight is constant" + (f", through {' > '.join(const.path)}" if const.path else "")


def _sparse_tactics(case: Case) -> Answer:
    if covers(">=8.0", case.aim.tensorrt) is False:
        return FAIL, "sparse tactics came with TensorRT 8.0"
    return PASS, "in a build with SPARSE_WEIGHTS"


def _capability(case: Case) -> Answer:
    sm = case.aim.sm
    if sm is None:
        return UNKNOWN, "the compute capability was not said"
    text = f"{sm[0]}.{sm[1]}"
    return (PASS, text) if sm >= (8, 0) else (FAIL, f"compute capability {text} has no sparse tensor cores")


def _weak(case: Case) -> Answer:
    if case.aim.typing == "strong" or case.kind is None or case.kind == "float64":
        return None
    if case.kind == "float32":
        return UNKNOWN, "float32: depends on whether the build allows FP16 or INT8" + ("" if case.aim.typing else " (if weakly typed)")
    return PASS, f"{case.kind}, where the build allows it"


def _strong(case: Case) -> Answer:
    if case.aim.typing == "weak" or case.kind is None:
        return None
    if case.kind in ("float32", "float64"):
        text = f"{case.kind}: runs as FP32 or TF32, whose hardware pattern is 1:2"
        return (FAIL, text) if case.aim.typing == "strong" else (UNKNOWN, text + " (if strongly typed)")
    return PASS, f"the tensor is {case.kind}"


def _hardware(case: Case) -> Answer:
    return (FAIL, f"{case.kind} has another hardware pattern than 2:4") if case.kind in NARROW else None


def _groups(case: Case) -> Answer:
    group = case.one.sighting.call.number("group", 1)
    if case.one.sighting.operator.family not in ("conv", "convtranspose") or group == 1:
        return None
    if covers("8.x", case.aim.tensorrt):
        return FAIL, f"{group} groups: not considered in 8.x"
    return UNKNOWN, f"{group} groups: not considered in 8.x, nothing is known of later versions"


def _operator(case: Case) -> Answer:
    one = case.one
    family, operand, value = one.sighting.operator.family, one.sighting.operand, one.value
    rank = len(value.shape) if value else 0
    if family == "convtranspose":
        return UNKNOWN, "a transposed convolution"
    if family == "conv" and rank > 4:
        return UNKNOWN, f"a {rank - 2}-D convolution"
    if family == "einsum":
        return UNKNOWN, "an Einsum"
    if operand.left:
        return UNKNOWN, "the constant stands on the left"
    if family == "matmul" and rank == 1:
        return UNKNOWN, "a matrix-vector product"
    return PASS, case.op


def _parsed(case: Case) -> Answer:
    return None if case.one.sighting.operator.parsed else (FAIL, f"TensorRT's ONNX parser refuses {case.op}")


def _stored_sparse(case: Case) -> Answer:
    const = case.one.sighting.const
    return (FAIL, "the weight is stored as a sparse tensor, which TensorRT's ONNX parser does not read") if const and const.sparse else None


def _myelin(case: Case) -> Answer:
    if case.one.sighting.operator.family not in ("gemm", "matmul"):
        return None
    known = covers(">=10.0", case.aim.tensorrt)
    if known:
        return PASS, "eligible from 10.x on, in Myelin regions too"
    if known is None:
        return UNKNOWN, "depends on the TensorRT version, which was not said"
    return UNKNOWN, "in a Myelin region 8.4 never listed it; outside one it may be eligible"


def _sibling(case: Case) -> Answer:
    if not case.siblings:
        return None
    dense = [node_name(other.sighting.call.node) for other in case.siblings if other.two_four is not True]
    if dense and case.one.two_four:
        return UNKNOWN, f"fused with {', '.join(dense[:4])}{' ...' if len(dense) > 4 else ''}, not 2:4"
    return PASS, f"shares its input with {len(case.siblings)} others"


def _quantization(case: Case) -> Answer:
    const = case.one.sighting.const
    found = const.quantized if const else None
    if found is None:
        return None
    if found.zero_point:
        return FAIL, "its zero point is not 0, which TensorRT's ONNX parser refuses"
    if found.dtype == "uint8" and const is not None and "QuantizeLinear" in const.path:
        return UNKNOWN, "uint8 behind QuantizeLinear: parsed, but the engine's type is not known"
    if found.dtype not in (*EIGHTS, "int4", "float4_e2m1fn"):
        return FAIL, f"weights quantized to {found.dtype}, which TensorRT's ONNX parser refuses"
    if found.layout == "block" and found.dtype not in NARROW:
        return UNKNOWN, f"{found.dtype} with blocked scales: nothing is known"
    return PASS, f"{found.dtype}, per {found.layout}"


def _element_type(case: Case) -> Answer:
    if case.kind is None or case.kind in ("float32", *NARROW):
        return None
    if case.kind in (*HALVES, *EIGHTS):
        return PASS, case.kind
    return UNKNOWN, f"nothing is known of 2:4 kernels for {case.kind}"


def _fp8(case: Case) -> Answer:
    if case.kind is None or not case.kind.startswith("float8"):
        return None
    if case.aim.sm is None:
        return UNKNOWN, "the compute capability was not said"
    return (PASS, "8.9 or later") if case.aim.sm >= (8, 9) else (FAIL, "no FP8 tensor cores below compute capability 8.9")


RULE_TABLE: dict[str, Callable[[Case], Answer]] = {
    "SG101": _pattern,
    "SG102": _multiple,
    "SG103": _constant,
    "SG104": _sparse_tactics,
    "SG105": _capability,
    "SG106": _weak,
    "SG107": _strong,
    "SG108": _hardware,
    "SG109": _groups,
    "SG110": _operator,
    "SG111": _parsed,
    "SG112": _stored_sparse,
    "SG113": _myelin,
    "SG114": _sibling,
    "SG115": _quantization,
    "SG116": _element_type,
    "SG117": _fp8,
}


def apply_rules(one: Judgement, siblings: list[Judgement], target: Aim) -> tuple[list[RuleOutcome], Rung]:
    """Outcomes of all rules and hints that concern an operand, and what the rules add up to.

    Eligible is `no` where a rule fails, else `unknown` where one is unknown, else `yes`; hints do not count.
    """
    case = Case(one, siblings, target)
    outcomes = []
    for code in RULES:
        answer = RULE_TABLE[code.id](case)
        if answer is not None:
            outcomes.append(RuleOutcome(id=code.id, outcome=answer[0], text=answer[1]))
    said = {outcome.outcome for outcome in outcomes}
    eligible = Rung.NO if FAIL in said else Rung.UNKNOWN if UNKNOWN in said else Rung.YES
    for hint, answer_hint in HINT_TABLE.items():
        text = answer_hint(case)
        if text:
            outcomes.append(RuleOutcome(id=hint, outcome=Outcome.HINT, text=text))
    return outcomes, eligible
