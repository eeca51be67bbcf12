"""Options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.errors import ExitCode

EXIT_OF_OUTCOME = {"pass": ExitCode.PASS, "fail": ExitCode.FAIL, "inconclusive": ExitCode.UNDECIDED}
"""What a command returns for a verdict."""
workspace = click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    envvar="SPARSEGATE_WORKSPACE",
    help="Folder that holds engines/, logs/ and baselines/ (default: the current one).",
)


def formats(*names: str) -> Callable[[Any], Any]:
    """A `--format` option that accepts just the formats that the command has."""
    return click.option("--format", "style", type=click.Choice(names), default=names[0], show_default=True, help="Output format.")


def open_stdin(files: Sequence[str]) -> None:
    """Refuse `-` where there is no standard input to read.

    Raises:
        click.UsageError: `-` is among the files, and standard input is closed.
    """
    if "-" in files and sys.stdin is None:
        raise click.UsageError("standard input is closed: give `-` a pipe or a file to read, or name a file")
