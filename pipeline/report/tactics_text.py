"""The tactic report for people, as plain text."""

from __future__ import annotations

from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer, TacticReport


def render(report: TacticReport) -> str:
    """Conflicts first, then eligible layers by time lost, then totals."""
    return "\n".join(line for build in report.builds for line in _build(build)) + "\n"


def lost_ms(layer: TacticLayer) -> float:
    """How much faster the best dense tactic was than the best sparse one, in ms; 0 where it was not or is not known."""
    best = layer.best
    if best is None or best.sparse is None or best.dense is None:
        return 0.0
    return max(0.0, best.sparse.ms - best.dense.ms)


def _build(build: Build) -> list[str]:
    lines = [
        f"build {build.id}: TensorRT {build.tensorrt or 'unknown'}, sparsity {build.sparsity or 'unknown'}, {build.result or 'no result'}"
    ]
    lines += [f"  conflict: {conflict.code}: {conflict.text}" for conflict in build.conflicts]
    eligible = [layer for layer in build.layers if layer.eligible in (Rung.YES, Rung.DISPUTED)]
    for layer in sorted(eligible, key=lost_ms, reverse=True):
        reasons = "; ".join(f"{reason.code} ({reason.text})" for reason in layer.reasons)
        lines.append(f"  {layer.selected:9} {layer.name}" + (f"  {reasons}" if reasons else ""))
    lines.append(f"  {len(build.eligible)} eligible, {len(build.selected)} selected, {len(build.disputed)} disputed")
    return lines
