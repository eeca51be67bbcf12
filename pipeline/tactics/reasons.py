"""Why an eligible layer is not selected (or its selection not known): codes with the layer's own figures."""

from __future__ import annotations

from pipeline.records.rung import Rung
from pipeline.records.tactics import Reason, Tactic
from pipeline.tactics.times import LayerTimes


def explain(eligible: Rung, selected: Rung, times: LayerTimes | None, tactic: Tactic | None, conflicts: list[str]) -> list[Reason]:
    """The reasons of one layer."""
    found: list[Reason] = []
    if selected is Rung.NO and times and times.best and times.best.comparable and times.best.sparse and times.best.dense:
        sparse, dense = times.best.sparse.ms, times.best.dense.ms
        if dense <= sparse and sparse > 0:
            text = f"dense {dense:g} ms, sparse {sparse:g} ms: the dense tactic is {(sparse - dense) / sparse:.1%} faster"
            found.append(Reason(code="dense-faster", text=text))
    return found
