"""Options that several commands share."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.errors import ExitCode

EXIT_OF_OUTCOME = {"pass": ExitCode.PASS, "fail": ExitCode.FAIL, "inconclusive": ExitCode.UNDECIDED}
"""What a command returns for a verdict."""


class GivenPath(click.Path):
    """A path on the command line. An empty one, as an unset variable in a script leaves it, is not read as the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, without the empty path."""
        if not os.fspath(value):
            self.fail("the path is empty (an unset variable?)", param, ctx)
        return super().convert(value, param, ctx)


class GivenFile(GivenPath):
    """A file to read: one that is not there is said before any work begins."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, with the path that was meant."""
        path = super().convert(value, param, ctx)
        if not Path(path).exists():
            from pipeline.paths import unreadable

            raise unreadable(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        return path


FILE = GivenPath(path_type=Path)
INPUT = GivenFile(path_type=Path)
FOLDER = GivenPath(file_okay=False, path_type=Path)
workspace = click.option(
    "--workspace",
    type=FOLDER,
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
