"""`sparsegate runs list` and `sparsegate runs prune`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli import options


@click.group()
def command() -> None:
    """List runs, or remove outputs that no run needs."""


@command.command("list")
@options.workspace
@click.argument("recipe", required=False)
def list_runs(workspace: Path, recipe: str | None) -> None:
    """List runs, oldest first: how each ended and which stages were taken from the store; of a killed one the command that goes on."""
    from pipeline.commands import in_workspace
    from pipeline.errors import InputError
    from pipeline.run.housekeeping import summaries
    from pipeline.run.workspace import all_runs

    known = sorted({folder.parent.name for folder in all_runs(workspace)})
    if recipe is not None and known and recipe not in known:
        raise InputError(f"no recipe with runs is called {recipe!r}", where="runs list", hint=f"recipes with runs: {', '.join(known)}")
    rows = summaries(workspace, recipe)
    for row in rows:
        click.echo(row)
    if not rows:
        click.echo(f"no runs yet: sparsegate run RECIPE{in_workspace(workspace)}", err=True)


@command.command("prune")
@options.workspace
@click.option("--yes", is_flag=True, help="Remove; without it only says what would be removed.")
@click.option(
    "--keep", type=click.IntRange(min=0), default=3, show_default=True, help="Latest runs of every recipe whose outputs are kept."
)
def prune_runs(workspace: Path, yes: bool, keep: int) -> None:
    """Remove stage outputs in engines/ that none of the kept runs needs; runs in logs/ stay."""
    from pipeline.commands import in_workspace
    from pipeline.run.housekeeping import prunable, remove

    total = 0
    for folder, size in prunable(workspace, keep):
        total += size
        click.echo(f"{'removed' if yes else 'would remove'} {folder} ({size / 2**20:.1f} MiB)")
        if yes:
            remove(folder)
    command_line = f"sparsegate runs prune --yes --keep {keep}{in_workspace(workspace)}"
    click.echo(f"{total / 2**20:.1f} MiB {'freed' if yes else f'could be freed: {command_line}'}" if total else "nothing to remove")
