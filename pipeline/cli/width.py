"""What commands know of the terminal: how wide it is, and whether it may be coloured."""

from __future__ import annotations

import os
import re
import shutil
import sys

import click

from pipeline.report.words import PipeWidth

PIPE_WIDTH = 80

COLOURS: dict[str, str] = {"PASS": "green", "FAIL": "red", "FAILED": "red", "INCONCLUSIVE": "yellow", "STOPPED": "yellow", "KILLED": "red"}
"""Colour of an outcome; the word itself says it without colour."""
_OUTCOME = re.compile(rf"\A({'|'.join(COLOURS)})\b")


def terminal_width() -> int:
    """Columns of the terminal; 80 in a pipe unless COLUMNS says otherwise, and there for paragraphs alone."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
    columns = os.environ.get("COLUMNS", "")
    return PipeWidth(columns if columns.isdecimal() and int(columns) > 0 else PIPE_WIDTH)


def may_colour() -> bool:
    """A terminal that can, and nobody who asked for none (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str) -> str:
    """A report with the outcome coloured and the last `next:` bold, where the terminal may be coloured; else as it is."""
    if not may_colour():
        return text
    text = _OUTCOME.sub(lambda match: click.style(match[1], fg=COLOURS[match[1]], bold=True), text)
    head, mark, tail = text.rpartition("\nnext:")
    return f"{head}\n{click.style('next:', bold=True)}{tail}" if mark else text
