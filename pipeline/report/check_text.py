"""The ONNX check for a terminal."""

from __future__ import annotations

from pipeline.codes import get
from pipeline.records.check import CheckedLayer, CheckReport, Outcome
from pipeline.records.rung import Rung

_MARK = {True: "yes", False: "no", None: "?"}


def lines(report: CheckReport) -> list[str]:
    """The report as plain lines: a table of layers, why each is not eligible, hints, notes, totals."""
    if not report.layers:
        return ["no operator that multiplies by a weight", *_notes(report), *parse_lines(report)]
    rows: list[tuple[str, ...]] = [("layer", "op", "weight", "shape", "axis", "type", "2:4", "zeros", "eligible")]
    rows += [_row(layer) for layer in report.layers]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    said = [line for layer in report.layers for line in _reasons(layer)]
    return [*table, *(["", *said] if said else []), *_notes(report), *parse_lines(report), "", summary(report)]


def summary(report: CheckReport) -> str:
    """Totals in one line."""
    totals = report.totals
    target = " ".join(
        f"{name} {value}"
        for name, value in (("SM", report.target.sm), ("TensorRT", report.target.tensorrt), ("typing", report.target.typing))
        if value
    )
    return f"{totals.two_four} of {totals.layers} layers are 2:4; eligible on {target or 'an unnamed target'}: {totals.eligible}"


def name(layer: CheckedLayer) -> str:
    """A layer's node with the subgraph or function that it lies in, in printable characters."""
    full = f"{layer.graph}/{layer.node}" if layer.graph else layer.node
    return printable(full)


def printable(text: str) -> str:
    """Text of a file without control characters that a terminal would obey."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def eligible(layer: CheckedLayer) -> str:
    """The rung, with the ids of the rules that decide it."""
    wanted = {Rung.NO: Outcome.FAIL, Rung.UNKNOWN: Outcome.UNKNOWN}.get(layer.eligible)
    ids = [rule.id for rule in layer.rules if rule.outcome is wanted]
    return f"{layer.eligible.value} ({', '.join(ids)})" if ids else layer.eligible.value


def parse_lines(report: CheckReport) -> list[str]:
    """What a real parser said; nothing where none was asked."""
    found = report.parse
    if found is None:
        return []
    head = f"parser {found.parser}: " + (f"reads the model ({found.layers} layers)" if found.parsed else "refuses the model")
    errors = [f"  {error.node or '?'} ({error.op or '?'}): {error.code}: {error.text}" for error in found.errors]
    log = [] if found.parsed else [f"  log: {line}" for text in found.log for line in text.splitlines() if line.strip()]
    return ["", *(printable(line) for line in (head, *errors, *log))]


def _row(layer: CheckedLayer) -> tuple[str, ...]:
    dtype = f"{layer.quantized} > {layer.dtype}" if layer.quantized else layer.dtype or "?"
    shape = "x".join(map(str, layer.shape)) if layer.shape is not None else "?"
    axis = "?" if layer.axis is None else str(layer.axis)
    zeros = f"{layer.zero_fraction:.1%}" if layer.two_four is not None else "?"
    weight = printable(layer.weight) if layer.weight is not None else "-"
    return (name(layer), layer.op, weight, shape, axis, dtype, _MARK[layer.two_four], zeros, eligible(layer))


def _reasons(layer: CheckedLayer) -> list[str]:
    out = []
    for rule in layer.rules:
        if rule.outcome is Outcome.PASS:
            continue
        out.append(f"{name(layer)}: {rule.id} {get(rule.id).title}: {rule.outcome.value}: {printable(rule.text)}")
        if rule.id == "SG101" and layer.located:
            out.append(f"{name(layer)}: first violating groups start at {', '.join(str(spot) for spot in layer.located[:3])}")
    return out


def _notes(report: CheckReport) -> list[str]:
    return ["", *(f"note: {printable(note)}" for note in report.notes)] if report.notes else []
