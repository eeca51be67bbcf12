"""A run as Markdown: the same rows as the text, with every layer and every reason in full."""

from __future__ import annotations

from pipeline.records.checkpoint import Checkpoint
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Measurement
from pipeline.records.verdict import Finding, Rungs
from pipeline.report import run_rows as rows
from pipeline.report.estimate_view import gpu_table
from pipeline.report.ladder_view import LEGEND, engine_row, is_layer, layer_columns, layer_row, place
from pipeline.report.masks_view import MASKS, mask_rows, summary
from pipeline.report.next_step import next_step
from pipeline.report.parity_view import LEGEND as PARITY_LEGEND
from pipeline.report.parity_view import PARITY, parity_rows
from pipeline.report.table import Column, md, md_table
from pipeline.report.words import page


def run_markdown(evidence: Evidence) -> str:
    """The whole report as GitHub Markdown."""
    title = f"{evidence.run.recipe}/{evidence.run.id}" if evidence.run else "run without run.json"
    blocks = [
        [f"# {rows.outcome(evidence)}: {md(title)}"],
        [md(rows.summary(evidence))],
        _rules(evidence),
        _ladder(rows.ladder(evidence)),
        _masks(evidence.train) if evidence.train else [],
        _measured(evidence.measure) if evidence.measure else [],
        [f"- {md(bound)}" for bound in rows.bounds(evidence)],
        gpu_table(evidence.export.estimate) if evidence.export and evidence.export.estimate else [],
        _findings(evidence.gate.findings if evidence.gate else []),
        [f"- {md(note)}" for note in (evidence.gate.notes if evidence.gate else ())],
        [f"**Next:** {md(next_step(evidence))}"],
    ]
    return page(blocks)


def _rules(evidence: Evidence) -> list[str]:
    if not evidence.gate or not evidence.gate.rules:
        return []
    table = md_table([*rows.RULES, Column("why")], [[*rows.rule_row(rule), rule.why] for rule in evidence.gate.rules])
    return ["## Budgets", "", *table]


def _ladder(ladder: list[Rungs]) -> list[str]:
    layers = [rungs for rungs in ladder if is_layer(rungs)]
    lines = ["## Ladder", ""]
    if layers:
        columns = [*layer_columns(), Column("above the gap"), Column("why")]
        lines += [*md_table(columns, [_layer_row(rungs) for rungs in layers]), "", md(LEGEND), ""]
    engine = [engine_row(rungs) for rungs in ladder if not is_layer(rungs)]
    lines += md_table([Column("of"), Column("rung"), Column("holds"), Column("because")], engine)
    return lines if layers or engine else []


def _layer_row(rungs: Rungs) -> list[str]:
    why = rungs.texts.get(rungs.missed, "") if rungs.missed else ""
    texts = [text for text in (why, rungs.decision) if text]
    return [*layer_row(rungs), ", ".join(place(step) for step in rungs.above_gap) or "-", "; ".join(texts)]


def _masks(checkpoint: Checkpoint) -> list[str]:
    said = summary(checkpoint)
    return ["## Masks", "", md(said), "", *md_table(MASKS, mask_rows(checkpoint))] if said else []


def _measured(measured: Measurement) -> list[str]:
    sections = {
        "Ratios of latency": md_table(rows.RATIOS, rows.ratio_rows(measured)),
        "Latency": md_table(rows.TIMES, rows.time_rows(measured)),
        "Quality": md_table(rows.QUALITY, rows.quality_rows(measured.quality)),
        "Energy": md_table(rows.ENERGY, rows.energy_rows(measured)),
        "Parity of engines": _parity(measured),
        "Size": md_table(rows.SIZES, rows.size_rows(measured)),
        "Conditions": [f"- {md(text)}" for text in rows.conditions(measured)],
    }
    return [line for title, lines in sections.items() if lines for line in (f"## {title}", "", *lines, "")][:-1]


def _parity(measured: Measurement) -> list[str]:
    table = md_table(PARITY, parity_rows(measured))
    return [*table, "", md(PARITY_LEGEND)] if table else []


def _findings(findings: list[Finding]) -> list[str]:
    lines = ["## Findings", ""] if findings else []
    for finding in findings:
        lines.append(f"- **{finding.id}** {md(finding.observation)}. {md(finding.establishes)}")
        lines += [f"  - {md(text)}" for text in finding.evidence]
        lines.append(f"  - next: {md(finding.next)}")
    return lines
