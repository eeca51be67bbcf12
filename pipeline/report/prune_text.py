"""What pruning did, for a terminal."""

from __future__ import annotations

from pipeline.records.prune import Action, PruneReport
from pipeline.report.check_text import printable


def lines(report: PruneReport) -> list[str]:
    """A table of layers, why some were refused, and totals."""
    rows: list[tuple[str, ...]] = [("layer", "op", "weight", "axis", "action", "zeroed", "magnitude lost", "zeros now")]
    for layer in report.layers:
        name = f"{layer.graph}/{layer.node}" if layer.graph else layer.node
        zeros = "?" if layer.zero_fraction is None else f"{layer.zero_fraction:.1%}"
        axis = "?" if layer.axis is None else str(layer.axis)
        lost = f"{layer.magnitude_lost:.1%}" if layer.action is Action.PRUNED else "-"
        rows.append(
            (printable(name), layer.op, printable(layer.weight or "-"), axis, layer.action.value, str(layer.values_zeroed), lost, zeros)
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    why = [f"{printable(layer.node)}: {printable(layer.why)}" for layer in report.layers if layer.why]
    count = {action: sum(layer.action is action for layer in report.layers) for action in Action}
    total = ", ".join(f"{number} {action.value}" for action, number in count.items())
    return [*table, *(["", *why] if why else []), "", f"{total}; written: {printable(report.output.path)}"]
