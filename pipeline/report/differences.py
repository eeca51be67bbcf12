"""What changed between two builds or runs, and how stable n builds are: as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from pipeline.records.difference import Change, ChangeKind, DiffReport, Figure, LayerStability, Point, Side, Spread, StabilityReport, Totals
from pipeline.records.rung import Rung
from pipeline.report.ladder_view import MARKS, place
from pipeline.report.table import Column, columns, md, md_table, text_table
from pipeline.report.words import count, interval, number, page, told, wrapped

Section = tuple[str, list[Column], list[list[str]]]
"""Title, columns, rows."""

HIDDEN = {ChangeKind.HIDDEN_IN_A, ChangeKind.HIDDEN_IN_B}
"""Kinds that are no change: one side does not tell."""

SHOWN = 40
"""So many changed layers on the terminal; Markdown and JSON have all."""


def diff_text(report: DiffReport, width: int = 80) -> str:
    """Environment first, then figures, rungs and layers by time, then what to do next."""
    changed = [figure for figure in report.figures if figure.a != figure.b]
    same = [f"{count(len(report.figures) - len(changed), 'figure')} the same: --format md"] if len(changed) < len(report.figures) else []
    shown = replace(report, figures=changed)
    return _text(f"A: {report.a}\nB: {report.b}", _diff_sections(shown), [*_diff_summary(report), *same], report.next, width)


def diff_markdown(report: DiffReport) -> str:
    """The same with every layer and the kernels' names."""
    *others, (title, titles, rows) = _diff_sections(report)
    kernels = [[*row, *_kernels(change)] for row, change in zip(rows, report.changes, strict=True)]
    layers = (title, [*titles, *columns("A's kernel", "B's kernel")], kernels)
    return _markdown(f"{report.a} against {report.b}", [*others, layers], _diff_summary(report), report.next)


def stability_text(report: StabilityReport, width: int = 80) -> str:
    """Changing layers first."""
    return _text(_stability_head(report), _stability_sections(report), _stability_summary(report), report.next, width)


def stability_markdown(report: StabilityReport) -> str:
    """The same with every layer."""
    return _markdown(_stability_head(report), _stability_sections(report), _stability_summary(report), report.next)


def _stability_head(report: StabilityReport) -> str:
    return f"{count(len(report.builds), 'build')} of one network"


def _text(head: str, sections: Sequence[Section], summary: Sequence[str], step: str, width: int) -> str:
    lines = [line for part in head.split("\n") for line in wrapped(part, width)]
    lines += [line for part in summary for line in wrapped(part, width)]
    for title, titles, rows in sections:
        if rows:
            lines += ["", title, *text_table(titles, rows[:SHOWN], width)]
            lines += [f"... {count(len(rows) - SHOWN, 'more row')}: --format md or json"] if len(rows) > SHOWN else []
    return "\n".join([*lines, "", *wrapped(f"next: {step}", width)]) + "\n"


def _markdown(head: str, sections: Sequence[Section], summary: Sequence[str], step: str) -> str:
    blocks = [[f"# {md(head)}"], [f"- {md(part)}" for part in summary]]
    blocks += [[f"## {title}", "", *md_table(titles, rows)] for title, titles, rows in sections if rows]
    return page([*blocks, [f"**Next:** {md(step)}"]])


def _diff_summary(report: DiffReport) -> list[str]:
    a, b = report.a_totals, report.b_totals
    hidden = sum(set(change.kinds) <= HIDDEN for change in report.changes)
    lines = [
        f"layers {a.layers} -> {b.layers}, sparse {_selected(a)} -> {_selected(b)}"
        + (f", {number(a.ms)} -> {number(b.ms, 'ms')} ({report.times})" if report.times else ", no times on both sides"),
        f"{count(len(report.changes) - hidden, 'group')} of layers changed, {report.same} did not"
        + (f", {hidden} not told by one side" if hidden else ""),
    ]
    failed = [f"{side} FAILED: no engine came of it" for side, totals in (("A", a), ("B", b)) if totals.result == "failed"]
    return [*failed, *lines, *(f"note: {note}" for note in report.notes)]


def _selected(totals: Totals) -> str:
    return "unknown" if totals.selected is None else told(totals.selected, totals.unknown)


def _diff_sections(report: DiffReport) -> list[Section]:
    return [
        ("Environment", columns("fact", "~A", "~B"), [[fact.name, fact.a or "-", fact.b or "-"] for fact in report.environment]),
        ("Figures", columns("@figure", "A", "B"), [_figure(figure) for figure in report.figures]),
        (
            "Rungs",
            columns("@of", "rung", "A", "B", "~why"),
            [[item.of, place(item.step), _mark(item.a), _mark(item.b), item.why] for item in report.rungs],
        ),
        (
            "Layers, by time",
            columns(">delta ms", ">A ms", ">B ms", "change", "A", "B", "@layers"),
            [_change(item) for item in report.changes],
        ),
    ]


def _mark(rung: Rung | None) -> str:
    return MARKS[rung] if rung else "none"


def _figure(figure: Figure) -> list[str]:
    return [figure.name, _point(figure.a, figure.unit), _point(figure.b, figure.unit)]


def _point(point: Point | None, unit: str) -> str:
    return f"{number(point.value, unit)} {interval(point.low, point.high)}".strip() if point else "-"


def _change(change: Change) -> list[str]:
    """Times, kinds of change, what each side runs, and the layers' names."""
    times = [number(change.delta_ms), number(change.a_ms), number(change.b_ms)]
    return [*times, ", ".join(kind.value for kind in change.kinds), _runs(change.a), _runs(change.b), _names(change)]


def _runs(sides: Sequence[Side]) -> str:
    """`sparse fp16`; `-` for no layer; several layers' once each."""
    texts = [" ".join(part for part in (side.kind if side.kind != "unknown" else "?", side.precision) if part) for side in sides]
    return ", ".join(dict.fromkeys(texts)) or "-"


def _names(change: Change) -> str:
    """The layer, or `a; b -> c` where names or fusions differ."""
    a, b = ("; ".join(side.layer for side in sides) for sides in (change.a, change.b))
    return a or b if a == b or not a or not b else f"{a} -> {b}"


def _kernels(change: Change) -> list[str]:
    """Kernel names of both sides."""
    return ["; ".join(side.tactic or "?" for side in sides) or "-" for sides in (change.a, change.b)]


def _stability_summary(report: StabilityReport) -> list[str]:
    known = [item for item in report.layers if item.selected or item.dense]
    changing = f"{count(report.changing, 'layer')} of {len(known)} sparse in some builds, dense in others"
    hidden = len(report.layers) - len(known)
    changing += f"; of {count(hidden, 'layer')} no build tells" if hidden else ""
    uneven = [f"not the same in all builds: {', '.join(report.environment)}"] if report.environment else []
    return [f"builds: {', '.join(report.builds)}", changing, *uneven]


def _stability_sections(report: StabilityReport) -> list[Section]:
    titles = columns("@layer", ">sparse", ">dense", ">unknown", "best sparse ms", "best dense ms")
    return [("Selection by layer", titles, [_stable(item) for item in report.layers])]


def _stable(item: LayerStability) -> list[str]:
    return [item.layer, *map(str, (item.selected, item.dense, item.unknown)), _spread(item.sparse_ms), _spread(item.dense_ms)]


def _spread(spread: Spread | None) -> str:
    return f"{number(spread.low)} to {number(spread.high)} (n={spread.n})" if spread else "-"
