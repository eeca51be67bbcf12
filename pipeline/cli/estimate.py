"""The options and the printing of `sparsegate check --estimate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeline.records.estimate import EstimateReport


def parse_shapes(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, list[int]]:
    """`x=32x3x224x224` -> {"x": [32, 3, 224, 224]}."""
    shapes = {}
    for text in given:
        name, _, sizes = text.rpartition("=")
        axes = sizes.lower().split("x")
        if not name or not all(axis.isdecimal() and int(axis) > 0 for axis in axes):
            raise click.BadParameter(f"{text!r} is not NAME=AxBxC, such as x=32x3x224x224")
        shapes[name] = [int(axis) for axis in axes]
    return shapes


def print_estimate(report: EstimateReport, form: str) -> None:
    """Print the bounds in one format."""
    from pipeline.cli.width import terminal_width
    from pipeline.records.io import encode
    from pipeline.report import estimate_view

    if form == "json":
        click.echo(encode(report), nl=False)
    else:
        text = estimate_view.estimate_markdown(report) if form == "md" else estimate_view.estimate_text(report, terminal_width())
        click.echo(text, nl=False)
