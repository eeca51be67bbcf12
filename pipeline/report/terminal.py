"""A run on the terminal: the first screen answers, the second says how sure, the last line says what to do next."""

from __future__ import annotations

from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Measurement
from pipeline.records.verdict import Finding, JudgedRule, RuleResult, Rungs
from pipeline.report import run_rows as rows
from pipeline.report.ladder_view import (
    LEGEND,
    MISSED,
    Missed,
    above_gap,
    engine_row,
    is_dense,
    is_layer,
    layer_columns,
    layer_row,
    place,
    why_missed,
)
from pipeline.report.masks_view import beyond_magnitude, summary
from pipeline.report.next_step import next_step
from pipeline.report.parity_view import LEGEND as PARITY_LEGEND
from pipeline.report.parity_view import PARITY, parity_rows
from pipeline.report.table import columns, text_table
from pipeline.report.words import count, wrapped

NAMED = 3
"""So many layers are named where several miss a rung for one reason; `explain` and the JSON name all."""
LAYERS = 40
"""So many layers are shown; the Markdown and the JSON have all."""


def run_text(evidence: Evidence, width: int = 80) -> str:
    """The whole report as plain text of at most `width` columns, but for names that cannot be shortened."""
    parts = [
        _head(evidence, width),
        _rules(evidence, width),
        _ladder(rows.ladder(evidence), width),
        _masks(evidence, width),
        _sure(evidence, width),
    ]
    lines = [line for part in parts if part for line in (*part, "")]
    return "\n".join([*lines, *wrapped(f"next: {next_step(evidence)}", width)]) + "\n"


def _head(evidence: Evidence, width: int) -> list[str]:
    run = f"{evidence.run.recipe}/{evidence.run.id}" if evidence.run else "run without run.json"
    lines = wrapped(f"{rows.outcome(evidence)}  {run}", width)
    lines += wrapped(rows.summary(evidence), width) if rows.summary(evidence) else []
    return [*lines, *wrapped(f"run: {evidence.folder}", width)] if evidence.folder else lines


def _rules(evidence: Evidence, width: int) -> list[str]:
    rules = evidence.gate.rules if evidence.gate else []
    wide = max((len(rule.outcome.value) for rule in rules), default=0) + 2
    return [line for rule in rules for line in wrapped(_rule(rule), width, first=f"{rule.outcome.value:<{wide}}", rest=" " * wide)]


def _rule(rule: JudgedRule) -> str:
    """The budget, what was found, and for a rule that does not pass why."""
    _, _, found, many = rows.rule_row(rule)
    facts = [found] if found != "-" else []
    facts += [f"n={many}"] if many != "-" else []
    text = f"{rule.text}: {', '.join(facts)}" if facts else rule.text
    return text if rule.outcome is RuleResult.PASS else f"{text}; {rule.why}"


def _ladder(ladder: list[Rungs], width: int) -> list[str]:
    layers = [rungs for rungs in ladder if is_layer(rungs)]
    shown = [layer_row(rungs) for rungs in layers if not is_dense(rungs)]
    lines = [*text_table(layer_columns(), shown[:LAYERS], width, gap=" ")] if shown else []
    lines += [f"... {count(len(shown) - LAYERS, 'more layer')}: --format md or json"] if len(shown) > LAYERS else []
    lines += [f"  {LEGEND}"] if shown else []
    lines += [line for missed in why_missed(layers) for line in wrapped(_missed(missed), width, rest="    ")]
    lines += [line for text in above_gap(layers) for line in wrapped(f"proven above the gap: {text}", width)]
    lines += [line for rungs in layers if is_dense(rungs) for line in wrapped(f"{rungs.of}: {rungs.decision}", width)]
    engine = [engine_row(rungs) for rungs in ladder if not is_layer(rungs)]
    for of, rung, mark, text in engine:
        lines += wrapped(f"{of}  {rung}: {mark}  {text}", width)
    return lines


def _missed(missed: Missed) -> str:
    """`6 selected disproved for a, b: reason`."""
    many = f", for {missed.reasons} reasons (sparsegate explain tells each); {missed.layers[0]}" if missed.reasons > 1 else ""
    return f"{place(missed.step)} {MISSED[missed.rung]} {_some(missed.layers)}{many}: {missed.text or 'no reason was recorded'}"


def _masks(evidence: Evidence, width: int) -> list[str]:
    """Only where there is more to say than that masks go by magnitude: the Markdown has it by layer."""
    return wrapped(summary(evidence.train), width) if evidence.train and beyond_magnitude(evidence.train) else []


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])} and {count(len(names) - NAMED, 'other layer')}"


def _sure(evidence: Evidence, width: int) -> list[str]:
    lines = ["How sure"]
    if evidence.measure:
        lines += _measured(evidence.measure, width)
    lines += [line for bound in rows.bounds(evidence) for line in wrapped(bound, width)]
    for finding in evidence.gate.findings if evidence.gate else ():
        lines += _finding(finding, width)
    lines += [line for note in (evidence.gate.notes if evidence.gate else ()) for line in wrapped(f"note: {note}", width)]
    return lines if len(lines) > 1 else []


def _measured(measured: Measurement, width: int) -> list[str]:
    """Ratios and times under their metric and shape, then quality, sizes and conditions."""
    tables = []
    for title, ratios, times in rows.by_metric_and_shape(measured):
        ratio_table = text_table(columns("arms", "of", "ratio", ">sure", ">n"), ratios, width)
        time_table = text_table(columns("@arm", "of", "ms", ">sure", ">n", ">samples"), times, width)
        tables.append([title, *ratio_table, *time_table])
    arms, sizes = rows.sizes_by_arm(measured)
    tables.append(text_table(rows.ENERGY, rows.energy_rows(measured), width))
    parity = text_table(PARITY, parity_rows(measured), width, gap=" ")
    tables.append([*parity, *wrapped(PARITY_LEGEND, width)] if parity else [])
    tables.append(text_table(rows.QUALITY, rows.quality_rows(measured.quality), width))
    held = text_table(columns("bytes of", *(f">{arm}" for arm in arms)), [row[:-1] for row in sizes], width)
    tables.append([*held, *wrapped("; ".join(f"{row[0]}: {row[-1]}" for row in sizes), width)])
    tables.append([line for text in rows.conditions(measured) for line in wrapped(text, width)])
    return [line for table in tables if table for line in (*table, "")]


def _finding(finding: Finding, width: int) -> list[str]:
    lines = wrapped(f"{finding.id} {finding.observation}", width)
    lines += wrapped(finding.establishes, width, first="  so: ", rest="      ")
    lines += [line for text in finding.evidence[:NAMED] for line in wrapped(text, width, first="  seen: ", rest="        ")]
    lines += [f"  and {count(len(finding.evidence) - NAMED, 'more line')}: --format md"] if len(finding.evidence) > NAMED else []
    return [*lines, *wrapped(finding.next, width, first="  next: ", rest="        ")]
