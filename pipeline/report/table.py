"""Tables that fit the terminal: 80 columns by default, wider where there is room; the same rows as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from pipeline.report.words import cells, fit, safe

GAP = "  "


class Column(msgspec.Struct, frozen=True):
    """One column: how it is titled, aligned, and whether its texts may be shortened in the middle."""

    title: str
    right: bool = False
    shrink: bool = False
    least: int = 12
    """A column that shrinks keeps at least so many characters."""


Row = Sequence[str]


def columns(*titles: str) -> list[Column]:
    """Columns by title: `>` before one aligns right, `~` lets it shrink."""
    return [Column(title.lstrip("~>"), right=title.startswith(">"), shrink=title.startswith("~")) for title in titles]


def text_table(columns: Sequence[Column], rows: Sequence[Row], width: int, *, gap: str = GAP) -> list[str]:
    """Lines of at most `width` columns; shrinking columns give way, longest first, the others never do."""
    if not rows:
        return []
    shown = [[safe(cell) for cell in row] for row in rows]
    widths = [max(cells(column.title), *(cells(row[i]) for row in shown)) for i, column in enumerate(columns)]
    _shrink(columns, widths, width - len(gap) * (len(columns) - 1))
    lines = [[column.title for column in columns], *shown]
    return [gap.join(_cell(c, cell, w) for c, cell, w in zip(columns, line, widths, strict=True)).rstrip() for line in lines]


def _shrink(columns: Sequence[Column], widths: list[int], room: int) -> None:
    """Narrow the widest shrinking column, one character at a time, until the row fits or nothing can give."""
    while sum(widths) > room:
        open_to = [i for i, column in enumerate(columns) if column.shrink and widths[i] > column.least]
        if not open_to:
            return
        widths[max(open_to, key=lambda i: widths[i])] -= 1


def _cell(column: Column, text: str, width: int) -> str:
    shown = fit(text, width)
    space = " " * (width - cells(shown))
    return space + shown if column.right else shown + space


def md_table(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """A GitHub table with whole texts."""
    if not rows:
        return []
    head = [column.title for column in columns]
    rule = ["---:" if column.right else "---" for column in columns]
    return ["| " + " | ".join(cells_) + " |" for cells_ in (head, rule, *([md(cell) for cell in row] for row in rows))]


_MD = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~"} | {"&": "&amp;"})


_MENTION = re.compile(r"(?<!\w)@(?=\w)")
"""Where GitHub would notify somebody of that name."""


def md(text: str) -> str:
    r"""Text of unknown origin for Markdown: shown as it is, never markup, never a mention.

    >>> md("a|b <img> *c*"), md("@team dense@again")
    ('a\\|b \\<img\\> \\*c\\*', '@&ZeroWidthSpace;team dense@again')
    """
    return _MENTION.sub("@&ZeroWidthSpace;", safe(text).translate(_MD))
