"""`sparsegate diff A B`."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.cli import options


@click.command()
@click.argument("sources", metavar="A [B...]", nargs=-1, required=True)
@click.option("--arm", default="sparse", show_default=True, help="The arm whose layers are compared, where a source is a run.")
@click.option("--build", "builds", type=int, multiple=True, metavar="N", help="Which build of A, of B, ... where one holds several.")
@options.formats("text", "md", "json")
@options.workspace
def command(sources: tuple[str, ...], arm: str, builds: tuple[int, ...], style: str, workspace: Path) -> None:
    """What changed between A and B: environment, selection, tactics, fusions, times, layer by layer.

    A and B are build logs, layer-info files, tactic reports (JSON) or runs. Layers are matched by the ONNX nodes that they
    hold, so fusions and names may differ. With three or more, or one run with several builds per arm: how stable the
    selection is over builds.
    """
    from pipeline import api
    from pipeline.cli.width import terminal_width
    from pipeline.records.difference import DiffReport
    from pipeline.records.io import encode
    from pipeline.report import differences as printed

    options.open_stdin(sources)
    places = [_place(source, workspace) for source in sources]
    report = api.diff(*places, arm=arm, builds=builds) if len(places) == 2 else api.stability(*places, arm=arm, builds=builds)
    if style == "json":
        text = encode(report).decode()
    elif isinstance(report, DiffReport):
        text = printed.diff_markdown(report) if style == "md" else printed.diff_text(report, terminal_width())
    else:
        text = printed.stability_markdown(report) if style == "md" else printed.stability_text(report, terminal_width())
    click.echo(text, nl=False)


def _place(source: str, workspace: Path) -> str:
    """A path as it stands; else the folder of the run of that name."""
    from pipeline.run.workspace import find

    return source if source.strip() and Path(source).exists() else str(find(source, workspace, or_file=True))
