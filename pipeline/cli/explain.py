"""`sparsegate explain RUN LAYER`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli import options
from pipeline.cli.completion import complete_run


@click.command()
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@click.argument("layer", metavar="LAYER")
@options.formats("text", "md", "json")
@options.workspace
def command(run: str, layer: str, style: str, workspace: Path) -> None:
    """One layer's whole story in a run, from weights to request.

    LAYER is the layer's name, its weight, one of its ONNX nodes, or the engine layer that holds it.
    """
    from pipeline import api
    from pipeline.cli.width import terminal_width
    from pipeline.records.io import encode
    from pipeline.report import story_view
    from pipeline.run.workspace import find

    story = api.explain(find(run, workspace), layer)
    if style == "json":
        click.echo(encode(story), nl=False)
    else:
        click.echo(story_view.story_markdown(story) if style == "md" else story_view.story_text(story, terminal_width()), nl=False)
