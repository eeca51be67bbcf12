"""Judge every rule, and the whole: pass needs all rules to pass, one failure fails, else inconclusive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from pipeline.records.verdict import Finding, JudgedRule, RuleResult, Rungs, Verdict
from pipeline.verdict.budget import Rule
from pipeline.verdict.facts import Facts
from pipeline.verdict.release import never_released
from pipeline.verdict.rules import KINDS


def judge(facts: Facts, rules: Sequence[Rule], *, ladder: Sequence[Rungs] = (), findings: Sequence[Finding] = ()) -> Verdict:
    """Hold every budget against the evidence.

    Each rule is judged at alpha of its own. As a pass needs all of them, a wrong pass of the whole is at most as likely as of one
    rule (intersection-union); a wrong failure of the whole can be as likely as the sum over its rules, which `notes` says.

    Args:
        facts: Records and statistics.
        rules: Budgets.
        ladder: Carried into the verdict.
        findings: Carried into the verdict.
    """
    judged = [row for rule in rules for row in KINDS[rule.kind].judge(rule, facts)]
    judged = _told_apart(judged)
    judged += never_released(facts.evidence, list(dict.fromkeys(rule.arm for rule in rules)))
    notes = []
    if not rules:
        notes.append("No rule was given: there is nothing to pass. Add budgets under gate.rules.")
    decided_by_test = sum(row.alpha is not None for row in judged)
    if decided_by_test > 1:
        chance = min(1.0, decided_by_test * facts.alpha)
        notes.append(
            f"{decided_by_test} rules rest on samples, each at an error of at most {facts.alpha:g}: the whole passes wrongly with at most "
            f"{facts.alpha:g}, and fails wrongly with at most {chance:g}."
        )
    measured = facts.evidence.measure
    if measured is not None and measured.conditions.unobserved:
        notes.append("Could not be observed during the measurement: " + ", ".join(measured.conditions.unobserved) + ".")
    return Verdict(
        outcome=overall(judged),
        rules=judged,
        ladder=list(ladder),
        findings=list(findings),
        notes=notes,
        alpha=facts.alpha,
        baseline=facts.baseline.name if facts.baseline else None,
    )


def _told_apart(judged: Sequence[JudgedRule]) -> list[JudgedRule]:
    """Rules that ask the same question with several budgets get a number behind their id: ids are unique in a verdict."""
    seen: Counter[str] = Counter()
    found = []
    for row in judged:
        seen[row.id] += 1
        found.append(row if seen[row.id] == 1 else replace(row, id=f"{row.id}#{seen[row.id]}"))
    return found


def overall(judged: Sequence[JudgedRule]) -> RuleResult:
    """The outcome of the whole; without rules there is nothing to pass."""
    outcomes = {row.outcome for row in judged}
    if RuleResult.FAIL in outcomes:
        return RuleResult.FAIL
    return RuleResult.PASS if outcomes == {RuleResult.PASS} else RuleResult.INCONCLUSIVE
