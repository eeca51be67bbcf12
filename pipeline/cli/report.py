"""`sparsegate report RUN`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli.where import run_folder, terminal_width, workspace_option


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--format", "style", type=click.Choice(["text", "md", "json"]), default="text", show_default=True, help="Output format.")
@workspace_option
def command(run: str, style: str, workspace: Path) -> None:
    """What a run found: the verdict, the ladder per layer, how sure it is, what to do next.

    RUN is a run's folder, `recipe/run-id`, or `recipe` for the latest. Nothing in it is changed.
    """
    from pipeline import api
    from pipeline.records.io import encode

    evidence = api.judged(run_folder(run, workspace))
    if style == "json":
        assert evidence.gate is not None  # judged gives every run a verdict
        click.echo(encode(evidence.gate), nl=False)
        return
    from pipeline import report

    click.echo(report.run_markdown(evidence) if style == "md" else report.run_text(evidence, terminal_width()), nl=False)
