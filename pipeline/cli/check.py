"""`sparsegate check MODEL.onnx`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli import options

if TYPE_CHECKING:
    from pipeline.records.check import CheckReport


@click.command("check")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--sm", metavar="X.Y", help="Compute capability of the target, such as 8.6.")
@click.option("--tensorrt", metavar="VERSION", help="TensorRT version of the target, such as 10.13.")
@click.option("--typing", type=click.Choice(["strong", "weak"]), help="How the network is typed.")
@click.option("--require", "required", metavar="PATTERN", multiple=True, help="Layers (a glob over names) that must pass.")
@click.option("--parse", is_flag=True, help="Let the ONNX parser of an installed tensorrt or tensorrt-rtx read the model too.")
@options.formats("text", "json", "md")
@click.pass_context
def command(
    ctx: click.Context,
    model: Path,
    sm: str | None,
    tensorrt: str | None,
    typing: str | None,
    required: tuple[str, ...],
    parse: bool,
    style: str,
) -> None:
    """Is each weight of MODEL 2:4 where its operator reads it, and will TensorRT find it eligible? Needs no GPU.

    A required layer passes when it is 2:4 and, where a target is given, eligible. Exit codes: 0 when nothing is required or
    all pass, 1 when one does not, 3 when one is unknown.
    """
    from pipeline import api
    from pipeline.records.check import Target

    report = api.check_onnx(model, Target(sm=sm, tensorrt=tensorrt, typing=typing), parse=parse)
    judged = api.require_layers(report, required)
    click.echo(_rendered(report, style), nl=False)
    if judged.lines and style == "text":
        click.echo("\n" + "\n".join(judged.lines))
    ctx.exit(int(judged.exit_code))


def _rendered(report: CheckReport, style: str) -> str:
    if style == "json":
        from pipeline.records.io import encode

        return encode(report).decode()
    if style == "md":
        from pipeline.report import check_markdown

        return check_markdown.render(report)
    from pipeline.cli.width import terminal_width
    from pipeline.report import check_text

    return check_text.render(report, terminal_width())
