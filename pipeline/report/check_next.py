"""The last line of `check`: the one thing to do next."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from pipeline import codes
from pipeline.records.check import CheckedLayer, CheckReport, Outcome, Target

PATTERN_RULE = "SG101"


def next_step(report: CheckReport) -> str:
    """A rule that keeps 2:4 weights dense first, then weights that are not 2:4, then what only a build can tell."""
    model, target = shlex.quote(report.model.path), report.target
    if not report.layers:
        return "nothing to do: no operator multiplies by a weight"
    blocked = [step for item in report.layers if item.two_four for step in _mending(item, report.model.path)]
    if blocked:
        return blocked[0]
    turned = next((item for item in report.layers if item.two_four is False and item.two_four_on_other_axes), None)
    if turned is not None:
        axes = ", ".join(map(str, turned.two_four_on_other_axes))
        return f"{turned.node} is 2:4 along axis {axes}, its operator sums over axis {turned.axis}: mask again along that axis"
    if not any(item.two_four for item in report.layers):
        probe = f"make a probe: sparsegate prune {model} -o PROBE.onnx"
        return f"see what 2:4 could bring: sparsegate check {model} --estimate{_given(target)}; {probe}"
    if target.tensorrt is None or target.sm is None:
        named = replace(target, sm=target.sm or "8.6", tensorrt=target.tensorrt or "10.13")
        return f"name the target to judge eligibility: sparsegate check {model}{_given(named)}"
    return "build it with --sparsity=enable --verbose, then read what was selected: sparsegate tactics BUILD.log"


def _given(target: Target) -> str:
    """The target as options."""
    words = (("--sm", target.sm), ("--tensorrt", target.tensorrt), ("--typing", target.typing))
    return "".join(f" {option} {shlex.quote(value)}" for option, value in words if value)


def _mending(item: CheckedLayer, path: str) -> list[str]:
    """For every rule that keeps a 2:4 layer dense, what mends it, where anything does."""
    failed = [rule for rule in item.rules if rule.outcome is Outcome.FAIL and rule.id != PATTERN_RULE]
    rows = [(rule, codes.REGISTRY.get(rule.id)) for rule in failed]
    model = shlex.quote(path)
    return [
        f"{item.node}: {rule.id} {rule.text}: {row.next.replace('MODEL.onnx', model)}" for rule, row in rows if row is not None and row.next
    ]
