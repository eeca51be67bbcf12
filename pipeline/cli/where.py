"""What commands about runs share: where a run is, and how wide the terminal is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pipeline.errors import InputError

PIPE_WIDTH = 80

workspace_option: Callable[[Any], Any] = click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder that holds engines/, logs/ and baselines/; the current folder by default.",
)


def run_folder(run: str, workspace: Path) -> Path:
    """The folder of a run: itself, `recipe/run-id`, or a recipe's latest run.

    Raises:
        InputError: there is no such run.
    """
    if (Path(run) / "run.json").is_file():
        return Path(run)
    raise InputError("not a run's folder: it holds no run.json", where=run, hint="give a folder below logs/<recipe>/")


def terminal_width() -> int:
    """Columns of the terminal; 80 in a pipe unless COLUMNS says otherwise."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else PIPE_WIDTH
