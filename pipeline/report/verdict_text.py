"""A verdict on the terminal: the outcome, every rule in a line, then what stands behind each that does not pass."""

from __future__ import annotations

from pipeline.records.verdict import JudgedRule, RuleResult, Verdict
from pipeline.report.table import columns, text_table
from pipeline.report.verdict_rows import headline, next_line, numbers, reasons, sorted_rules
from pipeline.report.words import interval, number, page, wrapped

RULES = columns("outcome", "~rule", ">value", "interval", ">budget", ">n")


def render(verdict: Verdict, width: int = 80, command: str = "sparsegate gate RUN") -> str:
    """The whole verdict as plain text of at most `width` columns."""
    rules = sorted_rules(verdict)
    table = text_table(RULES, [_row(rule) for rule in rules], width)
    behind = [line for rule in rules for line in _behind(rule, width)]
    notes = [line for note in verdict.notes for line in wrapped(f"note: {note}", width)]
    blocks = [[headline(verdict)], table, behind, notes, wrapped(f"next: {next_line(verdict, command)}", width)]
    return page(blocks)


def _row(rule: JudgedRule) -> list[str]:
    n = "" if rule.n is None else str(rule.n)
    return [rule.outcome.value, rule.text, number(rule.value, ""), interval(rule.low, rule.high), number(rule.budget, ""), n]


def _behind(rule: JudgedRule, width: int) -> list[str]:
    """Everything about a rule that does not pass; of one that does, its control and label alone."""
    passes = rule.outcome is RuleResult.PASS
    wanted = [(label, text) for label, text in reasons(rule) if not passes or label in ("label", "control")]
    if not wanted:
        return []
    lines = wrapped(f"{rule.outcome.value}: {rule.text}", width)
    if not passes and numbers(rule):
        lines += wrapped(numbers(rule), width, first="  ", rest="    ")
    return lines + [line for label, text in wanted for line in wrapped(f"{label}: {text}", width, first="  ", rest="    ")]
