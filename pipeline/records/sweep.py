"""One recipe at several points: where do sparse tactics begin to pay?"""

from __future__ import annotations

from pipeline.records.io import Part, Record
from pipeline.records.measurement import Estimate


class SweepPoint(Part, frozen=True, kw_only=True):
    """One point: its settings and what came of it."""

    settings: dict[str, str]
    """Dotted key -> value, as `--set` takes them."""
    run: str | None = None
    """The run's folder, relative to the workspace."""
    error: str | None = None
    """Why there is none."""
    layers: int = 0
    """Layers that the tactic report names for the sparse arm."""
    eligible: int | None = None
    """Of these; None where it is known of none, as on a backend without sparse kernels."""
    eligible_unknown: int = 0
    selected: int | None = None
    """As `eligible`."""
    selected_unknown: int = 0
    disputed: int = 0
    over_dense: Estimate | None = None
    """Latency of the sparse arm over the dense one, at the first measured shape, p50."""
    over_twin: Estimate | None = None
    """Over the arm of the same weights without the flag."""
    simulated: str | None = None
    doubt: str | None = None
    """Why the gain must not be believed: two loads of one plan were told apart."""
    outcome: str | None = None
    """The verdict of the point's run: pass, fail or inconclusive; None without one."""

    @property
    def pays(self) -> str:
        """`yes` or `no` where the interval says so (and a GPU ran it), else `not decided`."""
        gain = self.over_dense
        if gain is None or self.simulated or self.doubt or gain.low is None or gain.high is None:
            return "not decided"
        return "yes" if gain.high < 1 else "no" if gain.low > 1 else "not decided"


class Sweep(Record, frozen=True, kw_only=True, tag="sparsegate.sweep/1"):
    """All points of a recipe's `sweep`, in its order."""

    recipe: str
    points: list[SweepPoint]
