"""`sparsegate gate RUN`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from pipeline.cli import options


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--recipe", type=options.FILE, help="Judge by this recipe's gate section instead of the run's own.")
@click.option("--set", "overrides", metavar="a.b=c", multiple=True, help="Override a key of --recipe (repeatable).")
@click.option("--baseline", metavar="NAME", help="Stored baseline for rules with `over: baseline` (baselines/NAME.json).")
@click.option("--save-baseline", metavar="NAME", help="Store this run's figures, if it passes; a stored baseline only gets tighter.")
@click.option("--replace", is_flag=True, help="With --save-baseline: start anew instead of tightening.")
@click.option("--arm", metavar="ARM", help="With --save-baseline: whose figures.  [default: sparse]")
@options.formats("text", "md", "json", "junit")
@options.workspace
def command(
    run: str,
    recipe: Path | None,
    overrides: tuple[str, ...],
    baseline: str | None,
    save_baseline: str | None,
    replace: bool,
    arm: str | None,
    style: str,
    workspace: Path,
) -> None:
    """Judge RUN again from its records: the same records and budgets give the same bytes.

    RUN is a run's folder, `recipe/run-id`, or `recipe` for its latest run. Nothing in it is changed. The exit code is the
    verdict: 0 pass, 1 a rule fails, 3 inconclusive.
    """
    from pipeline import api
    from pipeline.run.workspace import baseline_path, find

    if save_baseline is None and (replace or arm is not None):
        raise click.UsageError(f"{'--replace' if replace else '--arm'} says how a baseline is stored: it needs --save-baseline NAME")
    folder = find(run, workspace)
    rules, alpha = _budgets(recipe, overrides)
    stored = baseline_path(workspace, baseline) if baseline is not None else None
    verdict = api.gate(folder, rules=rules, alpha=alpha, baseline=stored)
    given = [("--recipe", recipe), *(("--set", text) for text in overrides), ("--baseline", baseline)]
    options_given = "".join(f" {shlex.join([option, str(value)])}" for option, value in given if value is not None)
    click.echo(_rendered(verdict, style, folder, options_given), nl=False)
    if save_baseline is not None:
        path = baseline_path(workspace, save_baseline)
        for note in api.save_baseline(folder, verdict, path, arm="sparse" if arm is None else arm, replace=replace):
            click.echo(f"baseline {path}: {note}", err=True)
    sys.exit(int(options.EXIT_OF_OUTCOME[verdict.outcome]))


def _budgets(recipe: Path | None, overrides: tuple[str, ...]) -> tuple[list[dict[str, object]] | None, float | None]:
    """Rules and alpha of a recipe; None where the run's own are meant."""
    if recipe is None:
        if overrides:
            raise click.UsageError("--set needs --recipe")
        return None, None
    from pipeline.recipe import load_recipe

    section = load_recipe(recipe, overrides).recipe.gate
    return [rule.model_dump(mode="json") for rule in section.rules], section.alpha


def _rendered(verdict: object, style: str, folder: Path, options_given: str) -> str:
    """In one format; the JSON alone names no run, since the same records give the same bytes."""
    from msgspec.structs import replace

    from pipeline.cli.width import terminal_width
    from pipeline.commands import filled, names
    from pipeline.records import io
    from pipeline.records.evidence import Evidence
    from pipeline.records.run import Run
    from pipeline.records.verdict import Verdict
    from pipeline.report import verdict_junit, verdict_md, verdict_text

    assert isinstance(verdict, Verdict)
    if style == "json":
        return io.encode(verdict).decode()
    run = names(Evidence(folder=folder, run=io.read(folder / "run.json", Run)))["run"]
    rules = [replace(rule, needs=filled(rule.needs, run=run)) if rule.needs else rule for rule in verdict.rules]
    verdict, command_line = replace(verdict, rules=rules), f"sparsegate gate {run}{options_given}"
    if style == "junit":
        return verdict_junit.render(verdict, name=folder.resolve().parent.name)
    if style == "md":
        return verdict_md.render(verdict, command_line)
    return verdict_text.render(verdict, terminal_width(), command_line)
