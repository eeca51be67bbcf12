"""`sparsegate check MODEL.onnx`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli import options
from pipeline.cli.estimate import parse_shapes, print_estimate

if TYPE_CHECKING:
    from pipeline.records.check import CheckReport


@click.command("check")
@click.argument("model", type=options.FILE)
@click.option("--sm", metavar="X.Y", help="Compute capability of the target, such as 8.6.")
@click.option("--tensorrt", metavar="VERSION", help="TensorRT version of the target, such as 10.13.")
@click.option("--typing", type=click.Choice(["strong", "weak"]), help="How the network is typed.")
@click.option("--require", "required", metavar="PATTERN", multiple=True, help="Layers (a glob over names) that must pass.")
@click.option("--parse", is_flag=True, help="Let the ONNX parser of an installed tensorrt or tensorrt-rtx read the model too.")
@options.formats("text", "json", "md")
@click.option("--estimate", is_flag=True, help="At most how much faster could 2:4 make it? Bounds by GPU; the weights may be dense.")
@click.option("--batch", type=click.IntRange(min=1), metavar="N", help="estimate: size of the inputs' first axis where it is open.")
@click.option("--shape", "shapes", metavar="NAME=AxBxC", multiple=True, callback=parse_shapes, help="estimate: shape of one input.")
@click.option("--gpu", "gpus", metavar="NAME", multiple=True, help="estimate: a GPU of the table, such as A30; all when not given.")
@click.option("--gpu-table", type=options.FILE, help="estimate: a JSON file with further GPUs.")
@click.option("--accumulate", type=click.Choice(["fp32", "fp16"]), help="estimate: accumulation of fp16 kernels (default fp32).")
@click.option("--profile", type=options.FILE, help="estimate: trtexec's exportProfile, whose times replace the shapes.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: Path,
    sm: str | None,
    tensorrt: str | None,
    typing: str | None,
    required: tuple[str, ...],
    parse: bool,
    style: str,
    estimate: bool,
    **bounds: Any,
) -> None:
    """Is each weight of MODEL 2:4 where its operator reads it, and will TensorRT find it eligible? Needs no GPU.

    A required layer passes when it is 2:4 and, where a target is given, eligible. Exit codes: 0 when nothing is required or
    all pass, 1 when one does not, 3 when one is unknown.
    """
    from pipeline import api
    from pipeline.records.check import Target

    target = Target(sm=sm, tensorrt=tensorrt, typing=typing)
    if estimate and (required or parse):
        raise click.UsageError("--require and --parse belong to the check, not to the estimate: ask for them without --estimate")
    if not estimate and (given := [name for name, value in bounds.items() if value]):
        raise click.UsageError(f"--{given[0].rstrip('s').replace('_', '-')} belongs to the estimate: add --estimate")
    if estimate:
        print_estimate(api.estimate(model, target, **bounds), style)
        return
    report = api.check_onnx(model, target, parse=parse)
    judged = api.require_layers(report, required)
    click.echo(_rendered(report, style), nl=False)
    if style == "text":
        required_lines = [*judged.lines, ""] if judged.lines else []
        click.echo("\n" + "\n".join([*required_lines, *_next(report)]))
    ctx.exit(int(judged.exit_code))


def _next(report: CheckReport) -> list[str]:
    """The last line: what to do next."""
    from pipeline.cli.width import terminal_width
    from pipeline.report.check_next import next_step
    from pipeline.report.words import wrapped

    return wrapped(f"next: {next_step(report)}", terminal_width())


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
