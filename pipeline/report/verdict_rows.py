"""The rows of a verdict that the terminal, Markdown and JUnit share."""

from __future__ import annotations

from pipeline.records.verdict import JudgedRule, RuleResult, Verdict
from pipeline.report.words import count, interval, number

ORDER = {RuleResult.FAIL: 0, RuleResult.INCONCLUSIVE: 1, RuleResult.PASS: 2}


def sorted_rules(verdict: Verdict) -> list[JudgedRule]:
    """What keeps the release back first, within an outcome in the recipe's order."""
    return sorted(verdict.rules, key=lambda rule: ORDER[rule.outcome])


def headline(verdict: Verdict) -> str:
    """`FAIL: 1 of 5 rules fails, 1 is inconclusive`."""
    counts = {outcome: sum(rule.outcome is outcome for rule in verdict.rules) for outcome in ORDER}
    parts = [
        f"{many} {word}"
        for outcome, word in ((RuleResult.FAIL, "fail"), (RuleResult.INCONCLUSIVE, "inconclusive"))
        if (many := counts[outcome])
    ]
    every = f"{count(len(verdict.rules), 'rule')}: {', '.join([*parts, f'{counts[RuleResult.PASS]} pass'])}"
    return f"{verdict.outcome.value.upper()}  {every}" + (f", against baseline {verdict.baseline}" if verdict.baseline else "")


def numbers(rule: JudgedRule) -> str:
    """`0.979 ratio [0.946, 1.012], budget 1.1, n = 51`."""
    if rule.value is None:
        return f"no value, budget {number(rule.budget, rule.unit)}" if rule.budget is not None else ""
    bounds = interval(rule.low, rule.high)
    parts = [" ".join(part for part in (number(rule.value, rule.unit), bounds) if part)]
    parts += [f"budget {number(rule.budget)}"] if rule.budget is not None else []
    parts += [f"n = {rule.n}"] if rule.n is not None else []
    parts += [f"each bound at {100 * (1 - rule.alpha):g} %"] if rule.alpha is not None else []
    return ", ".join(parts)


def reasons(rule: JudgedRule) -> list[tuple[str, str]]:
    """Label and text of what stands behind a rule, the reason first."""
    pairs = (("why", rule.why), ("label", rule.label), ("control", rule.control), ("needs", rule.needs))
    return [(label, text) for label, text in pairs if text]


def next_line(verdict: Verdict, command: str = "sparsegate gate RUN") -> str:
    """What to do next; `command` is the one that gave the verdict."""
    first = sorted_rules(verdict)[0] if verdict.rules else None
    if first is None:
        return "set budgets in the recipe's gate section"
    if first.outcome is RuleResult.FAIL:
        return f"do not release: {first.text}"
    if first.outcome is RuleResult.INCONCLUSIVE:
        return first.needs or f"decide: {first.text}"
    return f"release, or keep as the baseline: {command} --save-baseline NAME"
