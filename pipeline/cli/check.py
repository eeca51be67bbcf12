"""`sparsegate check`: is each ONNX weight 2:4 where its operator reads it, and will TensorRT find it eligible?"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

FORMATS = {"text": "pipeline.report.check_text", "md": "pipeline.report.check_markdown"}


@click.command("check")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--sm", metavar="X.Y", help="Compute capability of the target, such as 8.6.")
@click.option("--tensorrt", metavar="VERSION", help="TensorRT version of the target, such as 10.13.")
@click.option("--typing", type=click.Choice(["strong", "weak"]), help="How the network is typed.")
@click.option(
    "--require",
    "required",
    metavar="PATTERN",
    multiple=True,
    help="Layers (a glob over names) that must be 2:4 and, where a target is given, eligible. Exit 1 if one is not, 3 if unknown.",
)
@click.option("--parse", is_flag=True, help="Let the ONNX parser of an installed tensorrt or tensorrt-rtx read the model too.")
@click.option("--format", "form", type=click.Choice(["text", "json", "md"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    model: Path,
    sm: str | None,
    tensorrt: str | None,
    typing: str | None,
    required: tuple[str, ...],
    parse: bool,
    form: str,
) -> None:
    """Is each weight of MODEL 2:4 where its operator reads it, and will TensorRT find it eligible? Needs no GPU."""
    from pipeline import api
    from pipeline.records.check import Target
    from pipeline.records.io import encode

    report = api.check_onnx(model, Target(sm=sm, tensorrt=tensorrt, typing=typing), parse=parse)
    verdict = api.require_layers(report, required)
    if form == "json":
        click.echo(encode(report), nl=False)
    else:
        click.echo("\n".join([*import_module(FORMATS[form]).lines(report), *verdict.lines]))
    ctx.exit(int(verdict.exit_code))
