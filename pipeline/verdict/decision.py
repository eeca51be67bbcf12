"""An interval against a budget."""

from __future__ import annotations

from pipeline.records.verdict import RuleResult


def at_most(low: float | None, high: float | None, budget: float) -> RuleResult:
    """Pass when even the upper bound is below the budget, fail when even the lower bound is above it."""
    if high is not None and high < budget:
        return RuleResult.PASS
    if low is not None and low > budget:
        return RuleResult.FAIL
    return RuleResult.INCONCLUSIVE


def at_least(low: float | None, high: float | None, budget: float) -> RuleResult:
    """Pass when even the lower bound reaches the budget, fail when even the upper bound is below it."""
    if low is not None and low >= budget:
        return RuleResult.PASS
    if high is not None and high < budget:
        return RuleResult.FAIL
    return RuleResult.INCONCLUSIVE


WORDS = {
    RuleResult.PASS: "the whole interval is within the budget",
    RuleResult.FAIL: "the whole interval is over the budget",
    RuleResult.INCONCLUSIVE: "the interval holds the budget: neither side is shown",
}
