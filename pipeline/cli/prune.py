"""`sparsegate prune MODEL.onnx -o OUT.onnx`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli import options


@click.command("prune")
@click.argument("model", type=options.FILE)
@click.option("-o", "--output", required=True, type=options.FILE, metavar="OUT.onnx", help="The pruned copy.")
@click.option("--layers", "patterns", metavar="PATTERN", multiple=True, help="Only layers whose name matches this glob.")
@options.formats("text", "json")
def command(model: Path, output: Path, patterns: tuple[str, ...], style: str) -> None:
    """Write a copy of MODEL that is 2:4 by magnitude along the axis that each operator sums over.

    It is a probe: it shows what sparse tactics could gain, before anybody trains. Accuracy is lost. All bytes but those of
    the zeroed values stay as they are.
    """
    from pipeline import api
    from pipeline.cli.width import terminal_width
    from pipeline.records.io import encode
    from pipeline.report import prune_text

    report = api.prune_onnx(model, output, patterns)
    click.echo(encode(report).decode() if style == "json" else prune_text.render(report, terminal_width()), nl=False)
