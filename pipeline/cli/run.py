"""`sparsegate run RECIPE`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.cli import options
from pipeline.errors import ExitCode


@click.command()
@click.argument("recipe", type=options.FILE)
@click.option("--set", "overrides", metavar="a.b=c", multiple=True, help="Override a key of the recipe (repeatable).")
@click.option("--from", "first", metavar="STAGE", help="Take the stages before STAGE from the store; they must be there.")
@click.option("--until", "last", metavar="STAGE", help="Stop after STAGE.")
@click.option("--force", metavar="STAGE", multiple=True, help="Execute STAGE even when its output is stored (repeatable).")
@options.workspace
@click.option("--quiet", "-q", is_flag=True, help="Print the report only.")
def command(
    recipe: Path,
    overrides: tuple[str, ...],
    first: str | None,
    last: str | None,
    force: tuple[str, ...],
    workspace: Path,
    quiet: bool,
) -> None:
    """Run RECIPE: train -> freeze -> export -> build -> tactics -> measure -> gate.

    Stages whose inputs have not changed are taken from the store. The run's folder is logs/<recipe>/<run-id>/. The exit
    code is the verdict: 0 pass, 1 a rule fails, 3 inconclusive; 2 a wrong recipe, 4 a stage failed. A recipe with a `sweep`
    runs once per point and ends in a table of selected layers and gain; its exit code is that of its worst point.
    """
    import signal

    from pipeline import api, report
    from pipeline.cli.width import paint, terminal_width
    from pipeline.recipe import load_recipe
    from pipeline.records.io import write_bytes
    from pipeline.run.chain import Plan, execute
    from pipeline.run.display import display
    from pipeline.run.sweep import points

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that run.json says that the run was stopped
    loaded = load_recipe(recipe, overrides)

    def run_once(settings: Sequence[str]) -> Path:
        point = load_recipe(recipe, [*overrides, *settings]) if settings else loaded
        with display(quiet) as (progress, notify):
            return execute(Plan(point, workspace, first, last, frozenset(force), sys.argv, progress, notify))

    if loaded.recipe.sweep:
        for settings in points(loaded.recipe.sweep):  # a wrong point is found before the first one runs
            load_recipe(recipe, [*overrides, *(f"{key}={value}" for key, value in settings.items())])
        _sweep(loaded.recipe.name, loaded.recipe.sweep, workspace, run_once)
        return
    folder = run_once(())
    evidence = api.judged(folder)
    write_bytes(folder / "report.md", report.run_markdown(evidence).encode())
    click.echo(paint(report.run_text(evidence, terminal_width())), nl=False)
    if evidence.gate is not None and evidence.gate.rules:
        sys.exit(int(options.EXIT_OF_OUTCOME[evidence.gate.outcome]))


def _sweep(name: str, settings: Mapping[str, Sequence[Any]], workspace: Path, run_once: Callable[[Sequence[str]], Path]) -> None:
    """Run every point; print the table, and keep it beside the runs."""
    from pipeline.cli.width import terminal_width
    from pipeline.records import io
    from pipeline.report.sweep_text import sweep_text
    from pipeline.run import workspace as folders
    from pipeline.run.sweep import run_sweep

    found = run_sweep(name, settings, workspace, run_once)
    file = folders.logs(workspace) / name / f"sweep-{folders.next_id(workspace)}.json"
    io.write(file, found)
    click.echo(sweep_text(found, terminal_width()), nl=False)
    click.echo(f"sweep: {file}")
    if any(point.error for point in found.points):
        sys.exit(int(ExitCode.STAGE))
    for outcome in ("fail", "inconclusive"):
        if any(point.outcome == outcome for point in found.points):
            sys.exit(int(options.EXIT_OF_OUTCOME[outcome]))
