"""The tactic report as Markdown, for an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.records.tactics import Build, TacticReport
from pipeline.report.tactics_advice import advice
from pipeline.report.tactics_text import eligible_layers, figures, headline, left_out, loaded, notes, shown, totals

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#&])")


def escape(text: str) -> str:
    """Text from a log as literal Markdown: names are never markup."""
    return _SPECIAL.sub(r"\\\1", shown(text))


def render(report: TacticReport) -> str:
    """One section for each build."""
    lines = [f"- {escape(line)}" for line in left_out(report)]
    lines += [""] if lines else []
    lines += [line for build in report.builds for line in _build(report, build)]
    lines += [f"- {escape(line)}" for run in report.runs for line in loaded(report, run)]
    return "\n".join(lines) + "\n"


def _build(report: TacticReport, build: Build) -> Iterator[str]:
    yield f"## {escape(headline(build))}"
    yield ""
    yield from (f"- {escape(note)}" for note in notes(report, build))
    yield f"- {escape(totals(build))}"
    yield from (f"- next: {escape(step)}" for step in advice(build, eligible_layers(build)))
    yield ""
    layers = eligible_layers(build)
    if layers:
        yield "| layer | selected | best sparse (ms) | best dense (ms) | lost (ms) | why |"
        yield "|---|---|---:|---:|---:|---|"
    for layer in layers:
        why = "; ".join(f"{reason.code}: {reason.text}" for reason in layer.reasons)
        yield f"| {escape(layer.id)} | {layer.selected} | {' | '.join(map(escape, figures(layer)))} | {escape(why)} |"
    if layers:
        yield ""
