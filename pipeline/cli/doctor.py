"""`sparsegate doctor`: what could each backend do on this machine, and what is missing?"""

from __future__ import annotations

import shlex

import click

from pipeline.cli import options


@click.command()
@click.option("--command", "prefix", help="Ask a target too: what reaches it, such as 'ssh orin' or 'docker exec -i trt'.")
@click.option("--trtexec", default="trtexec", show_default=True, help="trtexec on that target.")
@options.formats("text", "json")
def command(prefix: str | None, trtexec: str, style: str) -> None:
    """What could each backend do on this machine: GPU, driver, TensorRT, packages, and the command that brings what is missing."""
    from pipeline import api

    found = api.survey(shlex.split(prefix) if prefix else None, trtexec)
    if style == "json":
        from pipeline.records.io import encode

        click.echo(encode(found).decode(), nl=False)
        return
    from pipeline.report.survey_text import lines

    for line in lines(found):
        click.echo(line)
