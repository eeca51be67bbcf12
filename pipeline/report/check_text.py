"""The ONNX check for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.codes import get
from pipeline.records.check import CheckedLayer, CheckReport, Outcome, RuleOutcome
from pipeline.records.rung import Rung, tally
from pipeline.report.table import columns, text_table
from pipeline.report.words import count, safe, wrapped

COLUMNS = columns("@layer", "op", "@weight", "shape", ">axis", "type", "2:4", ">zeros", "eligible")
SHOWN = 4
"""Layers named under one rule; the JSON has all."""
_MARK = {True: "yes", False: "no", None: "?"}
_DECIDES = {Rung.NO: Outcome.FAIL, Rung.UNKNOWN: Outcome.UNKNOWN}


def render(report: CheckReport, width: int = 80) -> str:
    """The report as text: layers, the rules that speak against them with the layers they concern, hints, notes, totals."""
    lines = text_table(COLUMNS, [row(layer) for layer in report.layers], width) or ["no operator that multiplies by a weight"]
    for rule_id, outcome, found in grouped(report):
        lines += ["", *wrapped(f"{outcome.value}: {rule_id} {get(rule_id).title}", width)]
        for layer, rule in found[:SHOWN]:
            lines += wrapped(f"{name(layer)}: {rule.text}{located(layer, rule)}", width, first="  ", rest="    ")
        if len(found) > SHOWN:
            lines.append(f"  and {count(len(found) - SHOWN, 'more layer')}")
    for note in report.notes:
        lines += ["", *wrapped(f"note: {note}", width)]
    lines += parser(report)
    return "\n".join([*lines, "", *wrapped(summary(report), width)]) + "\n"


def summary(report: CheckReport) -> str:
    """Totals in one line."""
    totals, target = report.totals, report.target
    said = [f"{word} {value}" for word, value in (("SM", target.sm), ("TensorRT", target.tensorrt), ("typing", target.typing)) if value]
    where = " ".join(said) or "an unnamed target (--sm, --tensorrt, --typing)"
    return f"{totals.two_four} of {totals.layers} layers are 2:4; eligible on {where}: {_eligible(report)}"


def _eligible(report: CheckReport) -> str:
    """The number, and of how many layers it is not known: without a target little is."""
    eligible, unknown = tally(layer.eligible for layer in report.layers)
    if eligible is None:
        return "unknown" if report.layers else "none"
    return f"{report.totals.eligible} ({unknown} unknown)" if unknown else str(report.totals.eligible)


def name(layer: CheckedLayer) -> str:
    """A layer's node with the subgraph or function that it lies in."""
    return f"{layer.graph}/{layer.node}" if layer.graph else layer.node


def row(layer: CheckedLayer) -> list[str]:
    """One layer as cells of `COLUMNS`."""
    return [
        name(layer),
        layer.op,
        layer.weight if layer.weight is not None else "-",
        "x".join(map(str, layer.shape)) if layer.shape is not None else "?",
        "?" if layer.axis is None else str(layer.axis),
        f"{layer.quantized} > {layer.dtype}" if layer.quantized else layer.dtype or "?",
        _MARK[layer.two_four],
        f"{layer.zero_fraction:.1%}" if layer.two_four is not None else "?",
        eligible(layer),
    ]


def eligible(layer: CheckedLayer) -> str:
    """The rung, with the ids of the rules that decide it."""
    ids = [rule.id for rule in layer.rules if rule.outcome is _DECIDES.get(layer.eligible)]
    return f"{layer.eligible.value} ({', '.join(ids)})" if ids else layer.eligible.value


def grouped(report: CheckReport) -> Iterator[tuple[str, Outcome, list[tuple[CheckedLayer, RuleOutcome]]]]:
    """Rules that do not pass, failing ones first, each with the layers that it concerns."""
    for outcome in (Outcome.FAIL, Outcome.UNKNOWN, Outcome.HINT):
        found: dict[str, list[tuple[CheckedLayer, RuleOutcome]]] = {}
        for layer in report.layers:
            for rule in layer.rules:
                if rule.outcome is outcome:
                    found.setdefault(rule.id, []).append((layer, rule))
        for rule_id in sorted(found):
            yield rule_id, outcome, found[rule_id]


def located(layer: CheckedLayer, rule: RuleOutcome) -> str:
    """Where the first violating groups start, behind the rule that counts them."""
    if rule.id != "SG101" or not layer.located:
        return ""
    return "; the first at " + ", ".join(str(spot) for spot in layer.located[:2])


def parser(report: CheckReport) -> list[str]:
    """What a real parser said; nothing where none was asked."""
    found = report.parse
    if found is None:
        return []
    head = f"parser {found.parser}: " + (f"reads the model ({found.layers} layers)" if found.parsed else "refuses the model")
    errors = [f"  {error.node or '?'} ({error.op or '?'}): {error.code}: {error.text}" for error in found.errors]
    log = [] if found.parsed else [f"  log: {line}" for text in found.log for line in text.splitlines() if line.strip()]
    return ["", *(safe(line) for line in (head, *errors, *log))]
