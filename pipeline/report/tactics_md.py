"""The tactic report as Markdown, for an issue or a pull request."""

from __future__ import annotations

import re

from pipeline.records.rung import Rung
from pipeline.records.tactics import BestTime, Build, TacticReport
from pipeline.report.tactics_text import lost_ms

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#])")


def escape(text: str) -> str:
    """Text from a log as literal Markdown: names are never markup."""
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")


def render(report: TacticReport) -> str:
    """One section per build."""
    return "\n".join(line for build in report.builds for line in _build(build))


def _build(build: Build) -> list[str]:
    lines = [f"## Build {build.id}: TensorRT {escape(build.tensorrt or 'unknown')}, sparsity {build.sparsity or 'unknown'}", ""]
    lines += [f"- **{conflict.code}**: {escape(conflict.text)}" for conflict in build.conflicts] + ([""] if build.conflicts else [])
    lines.append(f"{len(build.eligible)} eligible, {len(build.selected)} selected, {len(build.disputed)} disputed.")
    eligible = [layer for layer in build.layers if layer.eligible in (Rung.YES, Rung.DISPUTED)]
    if eligible:
        lines += ["", "| layer | selected | best sparse (ms) | best dense (ms) | why |", "|---|---|---|---|---|"]
    for layer in sorted(eligible, key=lost_ms, reverse=True):
        best = layer.best
        why = "; ".join(f"{reason.code}: {reason.text}" for reason in layer.reasons)
        sparse, dense = _ms(best.sparse if best else None), _ms(best.dense if best else None)
        lines.append(f"| {escape(layer.name)} | {layer.selected} | {sparse} | {dense} | {escape(why)} |")
    return [*lines, ""]


def _ms(best: BestTime | None) -> str:
    return f"{best.ms:g}" if best else ""
