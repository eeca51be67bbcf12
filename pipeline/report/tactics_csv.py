"""The tactic report as CSV: one row per layer and build."""

from __future__ import annotations

import csv
import io
import re

from pipeline.records.tactics import BestTime, Build, TacticLayer, TacticReport

COLUMNS = (
    "build", "tensorrt", "layer", "profile", "region", "eligible", "timed", "selected", "tactic", "tactic_class", "tactic_id", "tactic_how",
    "best_sparse_ms", "best_sparse_format", "best_dense_ms", "best_dense_format", "comparable", "candidates_sparse", "candidates_dense",
    "candidates_unknown", "cache", "skipped", "tuned_ms", "profile_ms", "reasons", "onnx_nodes",
)  # fmt: skip
"""Columns are only ever added, at the end."""


def render(report: TacticReport) -> str:
    """The whole report; absent facts are empty fields."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for build in report.builds:
        writer.writerows(map(literal, _row(build, layer)) for layer in build.layers)
    return out.getvalue()


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would evaluate (https://owasp.org/www-community/attacks/CSV_Injection)."""


NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?", re.ASCII)


def literal(cell: object) -> object:
    """A cell that a spreadsheet shows and never evaluates: an apostrophe goes before a text that begins as a formula does.

    >>> literal("=HYPERLINK(...)"), literal("-conv"), literal(-0.5), literal("-0.5"), literal("conv")
    ("'=HYPERLINK(...)", "'-conv", -0.5, '-0.5', 'conv')
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell


def _best(best: BestTime | None) -> tuple[object, object]:
    return (best.ms, best.format) if best else (None, None)


def _row(build: Build, layer: TacticLayer) -> list[object]:
    tactic, best, counts = layer.tactic, layer.best, layer.candidates
    return [
        build.id,
        build.tensorrt,
        layer.name,
        layer.profile,
        layer.region,
        str(layer.eligible),
        str(layer.timed),
        str(layer.selected),
        *((tactic.name, tactic.kind, tactic.id, tactic.how) if tactic else (None,) * 4),
        *_best(best.sparse if best else None),
        *_best(best.dense if best else None),
        str(best.comparable).lower() if best else None,
        *((counts.sparse, counts.dense, counts.unknown) if counts else (None,) * 3),
        layer.cache,
        layer.skipped,
        layer.tuned_ms,
        layer.profile_ms,
        " ".join(reason.code for reason in layer.reasons),
        "|".join(layer.onnx_nodes),
    ]
