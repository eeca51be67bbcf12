"""`sparsegate run RECIPE`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeline.cli import options
from pipeline.errors import ExitCode

EXIT_OF_OUTCOME = {"pass": ExitCode.PASS, "fail": ExitCode.FAIL, "inconclusive": ExitCode.UNDECIDED}


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
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
    code is the verdict: 0 pass, 1 a rule fails, 3 inconclusive; 2 a wrong recipe, 4 a stage failed.
    """
    import signal

    from pipeline import api, report
    from pipeline.cli.width import paint, terminal_width
    from pipeline.recipe import load_recipe
    from pipeline.records.io import write_bytes
    from pipeline.run.chain import Plan, execute
    from pipeline.run.display import display

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that run.json says that the run was stopped
    loaded = load_recipe(recipe, overrides)
    with display(quiet) as (progress, notify):
        plan = Plan(loaded, workspace, first, last, frozenset(force), sys.argv, progress, notify)
        folder = execute(plan)
    evidence = api.judged(folder)
    write_bytes(folder / "report.md", report.run_markdown(evidence).encode())
    click.echo(paint(report.run_text(evidence, terminal_width())), nl=False)
    if evidence.gate is not None and evidence.gate.rules:
        sys.exit(int(EXIT_OF_OUTCOME[evidence.gate.outcome]))
