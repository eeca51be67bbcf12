"""`sparsegate report RUN`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli import options
from pipeline.cli.completion import complete_run


@click.command()
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@options.formats("text", "md", "json")
@options.workspace
def command(run: str, style: str, workspace: Path) -> None:
    """What a run found: the verdict, the ladder per layer, how sure it is, what to do next.

    RUN is a run's folder, `recipe/run-id`, or `recipe` for its latest run. Nothing in it is changed. The JSON holds all that the
    text is made of; `gate RUN --format json` gives the verdict alone.
    """
    from pipeline import api, report
    from pipeline.cli.width import paint, terminal_width
    from pipeline.records.io import encode
    from pipeline.run.workspace import find

    evidence = api.judged(find(run, workspace))
    if style == "json":
        click.echo(encode(report.run_report(evidence)), nl=False)
    else:
        click.echo(report.run_markdown(evidence) if style == "md" else paint(report.run_text(evidence, terminal_width())), nl=False)
