"""`sparsegate tactics FILE...`."""

from __future__ import annotations

import sys

import click

from pipeline.cli import options


@click.command(name="tactics")
@click.argument("files", nargs=-1, required=True, type=options.GivenPath(), metavar="FILE...")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "csv", "md"]), default="text", show_default=True, help="Output format."
)
@click.option("--onnx", type=options.GivenPath(dir_okay=False), help="Model whose nodes the parts of fused layer names are joined to.")
@click.option("--require", "patterns", multiple=True, metavar="PATTERN", help="Layers that must be selected (a glob; may be repeated).")
@click.option("--build", type=int, metavar="N", help="The build that a layer-info, profile or times file belongs to.")
@click.pass_context
def command(
    ctx: click.Context, files: tuple[str, ...], format_: str, onnx: str | None, patterns: tuple[str, ...], build: int | None
) -> None:
    """Which layers were eligible, timed, selected for sparse tactics, and why not?

    FILE is a TensorRT build log (also `-`, .gz, .zst), layer info, profile or times as JSON, a plan, or a folder of them:
    what it is, is told by its content. Files of one build are read together.

    With --require: exit code 1 when a layer is not selected, 3 when that is unknown or disputed, or when no layer matches
    but the sources do not name all of them, 2 when no layer matches.
    """
    from pipeline import api
    from pipeline.errors import ExitCode
    from pipeline.records import io
    from pipeline.report.tactics_text import left_out, shown

    options.open_stdin(files)
    report = api.read_log(*files, onnx=onnx, build=build)
    failures, code = api.require_selected(report, patterns)
    if format_ == "json":
        click.echo(io.encode(report).decode(), nl=False)
    elif format_ == "text" and sys.stdout.isatty():
        from pipeline.report import tactics_rich

        tactics_rich.show(report)
    else:
        from pipeline.report import tactics_csv, tactics_md, tactics_text

        writer = {"text": tactics_text.render, "md": tactics_md.render, "csv": tactics_csv.render}[format_]
        click.echo(writer(report), nl=False)
    if format_ in ("json", "csv"):
        for line in left_out(report):
            click.echo(line, err=True)
    for failure in failures:
        click.echo(shown(failure.text), err=True)
    if code is not ExitCode.PASS:
        ctx.exit(int(code))
