"""The A/A comparison beside a latency rule: if the same plan differs from itself, nothing else can be told apart either."""

from __future__ import annotations

import msgspec

from pipeline.records.measurement import Estimate
from pipeline.records.verdict import JudgedRule, RuleResult
from pipeline.verdict.decision import at_most
from pipeline.verdict.facts import Facts

AGAIN = "@again"
"""Ends the name of an arm that is another's plan, loaded a second time."""


def pair(facts: Facts, arms: tuple[str, ...], shape: str) -> tuple[str, str] | None:
    """The A/A pair to use: the reference's own, else the judged arm's, else any other, else arms that run the same kernels."""
    present = facts.statistics.arms(shape)
    loaded_again = [(name, name.removesuffix(AGAIN)) for name in present if name.endswith(AGAIN) and name.removesuffix(AGAIN) in present]
    for arm in reversed(arms):
        for found in loaded_again:
            if found[1] == arm:
                return found
    declared = facts.evidence.build.controls if facts.evidence.build else []
    same_kernels = [(p[0], p[1]) for p in declared if len(p) == 2 and set(p) != set(arms) and set(p) <= set(present)]
    return next(iter([*loaded_again, *same_kernels]), None)


def checked(row: JudgedRule, facts: Facts, arms: tuple[str, ...], shape: str, metric: str, quantile: str) -> JudgedRule:
    """The row as it stands after the control: refused where there is none, where it leaves out 1, or where it could turn the decision."""
    same = pair(facts, arms, shape)
    label = row.label or ("control: both arms run the same kernels here" if _is_control(facts, arms) else None)
    if same is None:
        return _refused(
            row, label, None, "no A/A arm was timed beside it, so the error of the measurement itself is unknown", "time one arm twice"
        )
    found = facts.statistics.ratio(same[0], same[1], shape, metric, quantile)
    if isinstance(found, str):
        return _refused(
            row, label, None, f"the A/A comparison {same[0]} / {same[1]} has no interval: {found}", "measure longer (measure.seconds)"
        )
    if found.low is None or found.high is None:
        return _refused(row, label, None, "too early for an interval of the A/A comparison", "measure longer (measure.seconds)")
    text = f"A/A {same[0]} / {same[1]}: {found.value:.4f} [{found.low:.4f}, {found.high:.4f}]"
    if not found.low <= 1.0 <= found.high:
        return _refused(
            row, label, text, "the A/A comparison leaves out 1: the same plan differs from itself", "quiet the machine and measure again"
        )
    if row.outcome is not RuleResult.INCONCLUSIVE and _shifted(row, found) is not row.outcome:
        return _refused(
            row,
            label,
            text,
            f"decided alone ({row.outcome}), but within the error that the A/A comparison leaves",
            "measure longer (measure.seconds)",
        )
    return msgspec.structs.replace(row, control=text, label=label)


def _shifted(row: JudgedRule, same: Estimate) -> RuleResult:
    """The outcome after moving the interval, against the decision, by the farther end of the A/A interval."""
    assert same.low and same.high and row.budget is not None
    farther = max(same.high, 1 / same.low)
    if row.outcome is RuleResult.PASS:
        return at_most(row.low, None if row.high is None else row.high * farther, row.budget)
    return at_most(None if row.low is None else row.low / farther, row.high, row.budget)


def _is_control(facts: Facts, arms: tuple[str, ...]) -> bool:
    declared = facts.evidence.build.controls if facts.evidence.build else []
    return len(arms) == 2 and any(set(found) == set(arms) for found in declared)


def _refused(row: JudgedRule, label: str | None, text: str | None, why: str, needs: str) -> JudgedRule:
    return msgspec.structs.replace(row, outcome=RuleResult.INCONCLUSIVE, why=why, needs=row.needs or needs, control=text, label=label)
