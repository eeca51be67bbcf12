"""A sweep as a table: selected layers and gain per point, and where 2:4 begins to pay."""

from __future__ import annotations

from pipeline.records.measurement import Estimate
from pipeline.records.sweep import Sweep, SweepPoint
from pipeline.report.table import columns, text_table
from pipeline.report.words import told


def sweep_text(sweep: Sweep, width: int) -> str:
    """The table, what could not be run, and one line that says where it pays."""
    keys = list(sweep.points[0].settings) if sweep.points else []
    titles = columns(*keys, ">eligible", ">selected", ">sparse/dense", ">sparse/twin", "pays")
    lines = text_table(titles, [[*point.settings.values(), *_cells(point)] for point in sweep.points], width)
    lines += [f"{_where(point)}: {point.error}" for point in sweep.points if point.error]
    lines += [f"{_where(point)}: {point.doubt}" for point in sweep.points if point.doubt]
    simulated = next((point.simulated for point in sweep.points if point.simulated), None)
    if simulated:
        lines.append(f"simulated: {simulated}")
    return "\n".join([*lines, "", f"break-even: {_break_even(sweep)}", ""])


def _cells(point: SweepPoint) -> list[str]:
    if point.error:
        return ["-", "-", "-", "-", "failed"]
    eligible = told(point.eligible, point.eligible_unknown)
    selected = told(point.selected, point.selected_unknown, of=point.layers, disputed=point.disputed)
    return [eligible, selected, _interval(point.over_dense), _interval(point.over_twin), point.pays]


def _interval(ratio: Estimate | None) -> str:
    if ratio is None:
        return "-"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.3f}"
    return f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def _where(point: SweepPoint) -> str:
    return ", ".join(f"{key}={value}" for key, value in point.settings.items())


def _break_even(sweep: Sweep) -> str:
    """The points at which the sparse arm is faster, in the sweep's order."""
    paying = [_where(point) for point in sweep.points if point.pays == "yes"]
    if paying:
        return f"2:4 pays at {len(paying)} of {len(sweep.points)} points, first at {paying[0]}"
    if any(point.pays == "not decided" for point in sweep.points):
        return "not decided at any point: raise measure.seconds, or measure on the device"
    return "2:4 pays at none of these points"
