"""A verdict as Markdown for a pull request or a CI job's summary: bounded in size."""

from __future__ import annotations

from pipeline.records.verdict import JudgedRule, RuleResult, Verdict
from pipeline.report.table import columns, md, md_table
from pipeline.report.verdict_rows import headline, next_line, numbers, reasons, sorted_rules
from pipeline.report.words import interval, number, page

LIMIT_BYTES = 60_000
"""CI systems cut or refuse larger summaries."""
LONGEST_TEXT = 600
"""Characters of one reason or name."""
MARKS = {RuleResult.PASS: "✅ pass", RuleResult.FAIL: "❌ fail", RuleResult.INCONCLUSIVE: "🟡 inconclusive"}
RULES = columns("outcome", "rule", ">value", "interval", ">budget", ">n")


def render(verdict: Verdict, command: str = "sparsegate gate RUN") -> str:
    """Markdown of at most `LIMIT_BYTES` bytes; rules that pass are left out first, and counted."""
    rules = sorted_rules(verdict)
    shown = len(rules)
    while True:
        text = _page(verdict, rules[:shown], len(rules) - shown, command)
        if len(text.encode()) <= LIMIT_BYTES or shown == 0:
            return text
        shown = shown * 3 // 4


def _page(verdict: Verdict, rules: list[JudgedRule], left_out: int, command: str) -> str:
    table = md_table(RULES, [_row(rule) for rule in rules])
    more = [f"{left_out} more rules are in the JSON."] if left_out else []
    behind = [line for rule in rules if rule.outcome is not RuleResult.PASS for line in _behind(rule)]
    controls = [f"- {md(_short(rule.control))}" for rule in rules if rule.outcome is RuleResult.PASS and rule.control]
    notes = [f"- {md(_short(note))}" for note in verdict.notes]
    controls = ["Controls:", "", *dict.fromkeys(controls)] if controls else []
    blocks = [
        [f"## {md(headline(verdict))}"],
        table,
        more,
        behind,
        controls,
        notes,
        [f"**Next:** {md(_short(next_line(verdict, command)))}"],
    ]
    return page(blocks)


def _row(rule: JudgedRule) -> list[str]:
    label = f" ({rule.label})" if rule.label else ""
    n = "" if rule.n is None else str(rule.n)
    return [MARKS[rule.outcome], _short(rule.text + label), number(rule.value), interval(rule.low, rule.high), number(rule.budget), n]


def _behind(rule: JudgedRule) -> list[str]:
    lines = [f"- **{rule.outcome.value}** {md(_short(rule.text))}"]
    lines += [f"  - {md(numbers(rule))}"] if rule.value is not None else []
    return lines + [f"  - {label}: {md(_short(text))}" for label, text in reasons(rule)]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
