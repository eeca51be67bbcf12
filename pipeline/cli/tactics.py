"""`sparsegate tactics FILE...`."""

from __future__ import annotations

import click


@click.command(name="tactics")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "format_", type=click.Choice(["text", "json", "csv", "md"]), default="text", show_default=True)
@click.option("--build", type=int, help="The build that a layer-info, profile or times file belongs to.")
def command(files: tuple[str, ...], format_: str, build: int | None) -> None:
    """Which layers were eligible, timed, selected for sparse tactics, and why not?

    FILE is a TensorRT log.
    """
    from pipeline import api
    from pipeline.records import io

    report = api.read_log(*files, build=build)
    if format_ == "json":
        click.echo(io.encode(report).decode(), nl=False)
        return
    from pipeline.report import tactics_csv, tactics_md, tactics_text

    writer = {"text": tactics_text.render, "md": tactics_md.render, "csv": tactics_csv.render}[format_]
    click.echo(writer(report), nl=False)
