"""The ONNX check as Markdown."""

from __future__ import annotations

from pipeline.codes import get
from pipeline.records.check import CheckReport, Outcome
from pipeline.report.check_text import eligible, name, parse_lines, printable, summary

_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>#|!&~"})
_MARK = {True: "yes", False: "no", None: "unknown"}


def escape(text: str) -> str:
    """Text of a file so that Markdown shows it and obeys none of it."""
    return printable(text).translate(_SPECIAL)


def lines(report: CheckReport) -> list[str]:
    """The report as Markdown lines: summary, table, reasons, notes."""
    out = [f"# 2:4 check of {escape(report.model.path)}", "", f"{summary(report)}.", ""]
    if report.layers:
        out += ["| layer | op | weight | shape | axis | type | 2:4 | zeros | eligible |", "|---|---|---|---|---|---|---|---|---|"]
    for layer in report.layers:
        cells = (
            name(layer),
            layer.op,
            layer.weight if layer.weight is not None else "-",
            "x".join(map(str, layer.shape)) if layer.shape is not None else "?",
            "?" if layer.axis is None else str(layer.axis),
            f"{layer.quantized} > {layer.dtype}" if layer.quantized else layer.dtype or "?",
            _MARK[layer.two_four],
            f"{layer.zero_fraction:.1%}" if layer.two_four is not None else "?",
            eligible(layer),
        )
        out.append("| " + " | ".join(escape(cell) for cell in cells) + " |")
    reasons = [
        f"- {escape(name(layer))}: {rule.id} {get(rule.id).title}: {rule.outcome.value}: {escape(rule.text)}"
        for layer in report.layers
        for rule in layer.rules
        if rule.outcome is not Outcome.PASS
    ]
    out += ["", "## Why", "", *reasons] if reasons else []
    out += ["", "## Parser", "", *(f"- {escape(line.strip())}" for line in parse_lines(report) if line)] if report.parse else []
    out += ["", "## Notes", "", *(f"- {escape(note)}" for note in report.notes)] if report.notes else []
    return out
