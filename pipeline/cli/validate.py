"""`sparsegate validate RECIPE`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli import options
from pipeline.errors import ExitCode

STATES = {True: "ok", False: "missing"}


@click.command()
@click.argument("recipe", type=options.FILE)
@click.option("--set", "overrides", metavar="a.b=c", multiple=True, help="Override a key of the recipe (repeatable).")
@click.pass_context
def command(ctx: click.Context, recipe: Path, overrides: tuple[str, ...]) -> None:
    """Is RECIPE right, and can this machine run it?

    Reads the recipe and looks for the packages, files, callables and the backend that it needs; runs none of its code.
    Exit code 0: right, and everything is there; 2: a wrong recipe, or something is missing.
    """
    from pipeline.commands import recipe_words
    from pipeline.recipe import load_recipe
    from pipeline.recipe.readiness import needs, warnings
    from pipeline.run.sweep import points

    loaded = load_recipe(recipe, overrides)
    for settings in points(loaded.recipe.sweep):
        load_recipe(recipe, [*overrides, *(f"{key}={value}" for key, value in settings.items())])
    click.echo(f"{recipe}: a right recipe (name {loaded.recipe.name}, digest {loaded.digest[:12]})")
    found = needs(loaded)
    for need in found:
        click.echo(f"  {STATES[need.missing is None]:<8}{need.of:<8}{need.what}" + (f": {need.missing}" if need.missing else ""))
    for text in warnings(loaded):
        click.echo(f"  warning {text}")
    missing = [need for need in found if need.missing]
    for hint in dict.fromkeys(need.hint for need in missing if need.hint):
        click.echo(f"next: {hint}")
    if missing:
        click.echo(f"This machine cannot run it: {len(missing)} of {len(found)} needs are missing.")
        ctx.exit(int(ExitCode.USAGE))
    click.echo(f"This machine can run it: sparsegate run {recipe_words(recipe, overrides)}")
