"""Does each engine compute what its oracles do: one row per pair and point of a profile, from the rows of its probes."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.records.measurement import EngineParity, Measurement
from pipeline.report.table import columns
from pipeline.report.words import number

PARITY = columns("~engine/oracle", "profile", ">max abs", ">max rel", ">at most", "~NaN/Inf", ">rows", "~agree")
LEGEND = (
    "max abs, max rel: largest difference, rel as a share of the oracle's largest value; NaN/Inf: values that one NaN or infinity in the "
    "input makes so in the oracle alone (lost) or in the engine alone (new); rows: largest difference between equal rows of a batch"
)


def parity_rows(measured: Measurement) -> list[list[str]]:
    """Cells of `PARITY`, in the order of the record."""
    found: dict[tuple[str, str], list[EngineParity]] = {}
    for row in measured.parity:
        found.setdefault((f"{row.engine}/{row.against}", f"{row.profile} {row.shape}"), []).append(row)
    return [[*key, *_cells(rows)] for key, rows in found.items()]


def _cells(rows: Sequence[EngineParity]) -> list[str]:
    """One point of a profile: the probes tell different things, and each stands in its column."""
    noise = [row for row in rows if row.probe in ("random", "rows")]
    spoiled = [row for row in rows if row.probe in ("nan", "inf")]
    equal = [row for row in rows if row.probe == "rows"]
    notes = [row.note for row in rows if row.note]
    failed = list(dict.fromkeys(row.probe for row in rows if not row.passed))
    return [
        _largest([row.max_abs for row in noise]),
        _largest([row.max_rel for row in noise]),
        _largest([row.tolerance for row in rows]),
        _spread(spoiled),
        _largest([row.rows_differ for row in equal]),
        "; ".join([f"no: {', '.join(failed)}" if failed else "yes", *dict.fromkeys(notes)]),
    ]


def _largest(values: Sequence[float | None]) -> str:
    """`-` where nothing was compared: an older record, or a probe that was not run."""
    told = [value for value in values if value is not None]
    return f"{max(told):.2g}" if told else "-"


def _spread(rows: Sequence[EngineParity]) -> str:
    if not rows:
        return "-"
    lost, new = sum(row.lost_nonfinite for row in rows), sum(row.new_nonfinite for row in rows)
    parts = [f"{number(many)} {word}" for many, word in ((lost, "lost"), (new, "new")) if many]
    return ", ".join(parts) or "alike"
