"""What pruning did, for a terminal."""

from __future__ import annotations

from pipeline.records.prune import Action, PrunedLayer, PruneReport
from pipeline.report.table import columns, text_table
from pipeline.report.words import safe, wrapped

COLUMNS = columns("@layer", "op", "@weight", ">axis", "action", ">zeroed", ">magnitude lost", ">zeros now")


def render(report: PruneReport, width: int = 80) -> str:
    """A table of layers, what is worth knowing of some, and totals."""
    rows = [_row(layer) for layer in report.layers]
    lines = text_table(COLUMNS, rows, width) or ["no operator that multiplies by a weight"]
    for layer in report.layers:
        lines += wrapped(f"{layer.node}: {layer.why}", width) if layer.why else []
    count = {action: sum(layer.action is action for layer in report.layers) for action in Action}
    total = ", ".join(f"{number} {action.value}" for action, number in count.items())
    return "\n".join([*lines, "", f"{total}; written: {safe(report.output.path)}"]) + "\n"


def _row(layer: PrunedLayer) -> list[str]:
    return [
        f"{layer.graph}/{layer.node}" if layer.graph else layer.node,
        layer.op,
        layer.weight or "-",
        "?" if layer.axis is None else str(layer.axis),
        layer.action.value,
        str(layer.values_zeroed),
        f"{layer.magnitude_lost:.1%}" if layer.action is Action.PRUNED else "-",
        "?" if layer.zero_fraction is None else f"{layer.zero_fraction:.1%}",
    ]
