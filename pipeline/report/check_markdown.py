"""The ONNX check as Markdown."""

from __future__ import annotations

from pipeline.codes import get
from pipeline.records.check import CheckReport
from pipeline.report.check_text import COLUMNS, grouped, located, name, parser, row, summary
from pipeline.report.table import md, md_table


def render(report: CheckReport) -> str:
    """The report as Markdown: summary, layers, every rule that does not pass with its layers, the parser's word, notes."""
    lines = [f"# 2:4 check of {md(report.model.path)}", "", f"{md(summary(report))}.", ""]
    lines += md_table(COLUMNS, [row(layer) for layer in report.layers])
    for rule_id, outcome, found in grouped(report):
        code = get(rule_id)
        lines += ["", f"## {outcome.value}: {rule_id} {md(code.title)}", "", md(code.text)]
        lines += [f"Next: {md(code.next)}."] if code.next else []
        lines += ["", *(f"- {md(name(layer))}: {md(rule.text + located(layer, rule))}" for layer, rule in found)]
    if report.parse is not None:
        lines += ["", "## Parser", "", *(f"- {md(line.strip())}" for line in parser(report) if line)]
    if report.notes:
        lines += ["", "## Notes", "", *(f"- {md(note)}" for note in report.notes)]
    return "\n".join(lines) + "\n"
