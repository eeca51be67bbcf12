"""The tactic report on a terminal."""

from __future__ import annotations

from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticReport
from pipeline.report.tactics_advice import advice
from pipeline.report.tactics_text import eligible_layers, figures, headline, left_out, loaded, notes, shown, totals

_STYLES = {Rung.YES: "green", Rung.NO: "red", Rung.DISPUTED: "yellow", Rung.UNKNOWN: "yellow"}


def show(report: TacticReport) -> None:
    """Print to the terminal, as wide as it is."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in left_out(report):
        console.print(Text(line, style="yellow"))
    for build in report.builds:
        console.print(Text(headline(build), style="bold"))
        for note in notes(report, build):
            console.print(Text(note, style="yellow" if note.startswith("conflict") else "dim"))
        console.print(_table(build))
        console.print(Text(totals(build)))
        for step in advice(build, eligible_layers(build)):
            console.print(Text(f"next: {shown(step)}", style="cyan"))
    for run in report.runs:
        for line in loaded(report, run):
            console.print(Text(line))


def _table(build: Build) -> object:
    """Names and texts from a log are `Text`: never markup."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False, collapse_padding=True)
    table.add_column("layer", overflow="fold", ratio=3)
    table.add_column("selected")
    for name in ("sparse ms", "dense ms", "lost ms"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold", ratio=2)
    for layer in eligible_layers(build):
        why = Text("\n".join(f"{reason.code}: {shown(reason.text)}" for reason in layer.reasons))
        selected = Text(str(layer.selected), style=_STYLES.get(layer.selected, ""))
        table.add_row(Text(shown(layer.id)), selected, *map(Text, figures(layer)), why)
    return table
