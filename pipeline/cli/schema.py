"""`sparsegate schema [NAME]`."""

from __future__ import annotations

import click

from pipeline.records.schemas import RECORDS

NAMES = ("recipe", *RECORDS)


@click.command()
@click.argument("name", type=click.Choice(NAMES), default="recipe")
def command(name: str) -> None:
    """Print the JSON Schema of a recipe, or of a record: NAME is recipe (the default), tactics, check, measurement, verdict or run."""
    if name == "recipe":
        from pipeline.recipe.document import schema_text

        click.echo(schema_text(), nl=False)
    else:
        from pipeline.records import schemas

        click.echo(schemas.schema_text(name), nl=False)
