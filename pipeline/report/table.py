"""Tables that fit the terminal: 80 columns by default, wider where there is room; the same rows as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from pipeline.report.words import PipeWidth, cells, distinct_head, fit, safe

GAP = "  "


class Column(msgspec.Struct, frozen=True):
    """One column: how it is titled, aligned, and whether its texts may be shortened in the middle on a terminal."""

    title: str
    right: bool = False
    shrink: bool = False
    least: int = 12
    """A column that shrinks keeps at least so many characters."""
    names: bool = False
    """Names are shortened only so far that no two of them read the same, even where the row is then wider than the terminal."""


Row = Sequence[str]


def columns(*titles: str) -> list[Column]:
    """Columns by title: `>` before one aligns right, `~` lets its texts shrink, `@` its names."""
    return [
        Column(title.lstrip("~>@"), right=title.startswith(">"), shrink=title.startswith(("~", "@")), names=title.startswith("@"))
        for title in titles
    ]


def text_table(columns: Sequence[Column], rows: Sequence[Row], width: int, *, gap: str = GAP) -> list[str]:
    """Lines of at most `width` columns: shrinking columns give way, longest first, the others never do; in a pipe none does."""
    if not rows:
        return []
    shown = [[safe(cell) for cell in row] for row in rows]
    widths = [max(cells(column.title), *(cells(row[i]) for row in shown)) for i, column in enumerate(columns)]
    texts = [{row[i] for row in shown} for i in range(len(columns))]
    if not isinstance(width, PipeWidth):
        _shrink(columns, texts, widths, width - len(gap) * (len(columns) - 1))
    heads = [distinct_head(texts[i], widths[i]) if column.names else None for i, column in enumerate(columns)]
    lines = [[column.title for column in columns], *shown]
    return [gap.join(map(_cell, columns, line, widths, heads)).rstrip() for line in lines]


def _shrink(columns: Sequence[Column], texts: Sequence[set[str]], widths: list[int], room: int) -> None:
    """Narrow the widest shrinking column, one character at a time, until the row fits or nothing can give."""
    least = [column.least if column.shrink else widths[i] for i, column in enumerate(columns)]
    if sum(widths) > room:
        least = [_distinct_width(texts[i], least[i], widths[i]) if column.names else least[i] for i, column in enumerate(columns)]
    while sum(widths) > room:
        open_to = [i for i in range(len(columns)) if widths[i] > least[i]]
        if not open_to:
            return
        widths[max(open_to, key=lambda i: widths[i])] -= 1


def _distinct_width(texts: set[str], least: int, most: int) -> int:
    """The least width above which all names of a column stay different at every width."""
    for width in range(most - 1, least - 1, -1):
        if distinct_head(texts, width) is None:
            return width + 1
    return min(least, most)


def _cell(column: Column, text: str, width: int, head: int | None) -> str:
    shown = fit(text, width, head)
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
