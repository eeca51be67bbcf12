"""A run on the terminal: the first screen answers, the second says how sure, the last line says what to do next."""

from __future__ import annotations

from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Measurement
from pipeline.records.verdict import Finding, RuleResult, Rungs
from pipeline.report import run_rows as rows
from pipeline.report.ladder_view import (
    LEGEND,
    above_gap,
    engine_row,
    is_dense,
    is_layer,
    layer_columns,
    layer_row,
    place,
    why_missed,
)
from pipeline.report.next_step import next_step
from pipeline.report.table import text_table
from pipeline.report.words import count, wrapped

NAMED = 3
"""So many layers are named where several miss a rung for one reason; `explain` and the JSON name all."""


def run_text(evidence: Evidence, width: int = 80) -> str:
    """The whole report as plain text of at most `width` columns, but for names that cannot be shortened."""
    parts = [_head(evidence, width), _rules(evidence, width), _ladder(rows.ladder(evidence), width), _sure(evidence, width)]
    lines = [line for part in parts if part for line in (*part, "")]
    return "\n".join([*lines, *wrapped(f"next: {next_step(evidence)}", width)]) + "\n"


def _head(evidence: Evidence, width: int) -> list[str]:
    run = f"{evidence.run.recipe}/{evidence.run.id}" if evidence.run else "run without run.json"
    lines = wrapped(f"{rows.outcome(evidence)}  {run}", width)
    return [*lines, *wrapped(rows.summary(evidence), width)] if rows.summary(evidence) else lines


def _rules(evidence: Evidence, width: int) -> list[str]:
    if not evidence.gate or not evidence.gate.rules:
        return []
    table = text_table(rows.RULES, [rows.rule_row(rule) for rule in evidence.gate.rules], width)
    why = [
        line
        for rule in evidence.gate.rules
        if rule.outcome is not RuleResult.PASS
        for line in wrapped(f"{rule.text}: {rule.why}", width, first=f"{rule.outcome.value}: ")
    ]
    return [*table, *why]


def _ladder(ladder: list[Rungs], width: int) -> list[str]:
    layers = [rungs for rungs in ladder if is_layer(rungs)]
    shown = [layer_row(rungs) for rungs in layers if not is_dense(rungs)]
    lines = [*text_table(layer_columns(), shown, width, gap=" "), f"  {LEGEND}"] if shown else []
    for step, text, names in why_missed(layers):
        lines += wrapped(f"{place(step)} missed by {_some(names)}: {text or 'no reason was recorded'}", width, rest="    ")
    lines += [line for text in above_gap(layers) for line in wrapped(f"proven above the gap: {text}", width)]
    lines += [line for rungs in layers if is_dense(rungs) for line in wrapped(f"{rungs.of}: {rungs.decision}", width)]
    engine = [engine_row(rungs) for rungs in ladder if not is_layer(rungs)]
    for of, rung, mark, text in engine:
        lines += wrapped(f"{of}  {rung}: {mark}  {text}", width)
    return lines


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])} and {count(len(names) - NAMED, 'other layer')}"


def _sure(evidence: Evidence, width: int) -> list[str]:
    lines = ["How sure"]
    if evidence.measure:
        lines += _measured(evidence.measure, width)
    for finding in evidence.gate.findings if evidence.gate else ():
        lines += _finding(finding, width)
    lines += [line for note in (evidence.gate.notes if evidence.gate else ()) for line in wrapped(f"note: {note}", width)]
    return lines if len(lines) > 1 else []


def _measured(measured: Measurement, width: int) -> list[str]:
    tables = [
        text_table(rows.RATIOS, rows.ratio_rows(measured), width),
        text_table(rows.TIMES, rows.time_rows(measured), width),
        text_table(rows.QUALITY, rows.quality_rows(measured.quality), width),
        text_table(rows.SIZES, rows.size_rows(measured), width),
        [line for text in rows.conditions(measured) for line in wrapped(text, width)],
    ]
    return [line for table in tables if table for line in (*table, "")][:-1]


def _finding(finding: Finding, width: int) -> list[str]:
    lines = wrapped(f"{finding.id} {finding.observation}", width)
    lines += wrapped(finding.establishes, width, first="  so: ", rest="      ")
    lines += [line for text in finding.evidence for line in wrapped(text, width, first="  seen: ", rest="        ")]
    return [*lines, *wrapped(finding.next, width, first="  next: ", rest="        ")]
