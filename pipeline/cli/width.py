"""How wide the terminal is."""

from __future__ import annotations

import os
import shutil
import sys

PIPE_WIDTH = 80


def terminal_width() -> int:
    """Columns of the terminal; 80 in a pipe unless COLUMNS says otherwise."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else PIPE_WIDTH
