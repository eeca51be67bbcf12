"""Text that is safe to print, fits a width, and shows a number the same way everywhere."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence

ELLIPSIS = "…"


class PipeWidth(int):
    """The width of what is no terminal: paragraphs break there, tables keep their texts whole whatever it is."""


def safe(text: str) -> str:
    r"""Text of unknown origin for a terminal: control and direction characters are shown, never obeyed.

    >>> safe("conv\x1b[2J\n1")
    'conv\\x1b[2J\\x0a1'
    """
    return "".join(char if _printable(char) else _escaped(char) for char in text)


def _printable(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def cells(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def fit(text: str, width: int, head: int | None = None) -> str:
    """The text, or its beginning and end about an ellipsis: names of layers differ at both ends.

    Args:
        text: Any text.
        width: Columns that it may take.
        head: Columns before the ellipsis; half of them where it is not said.

    >>> fit("backbone.layer4.conv2", 12), fit("backbone.layer4.conv2", 12, 2)
    ('backbo…conv2', 'ba…er4.conv2')
    """
    if cells(text) <= width:
        return text
    if width < 3:
        return text[:width]
    head = width - 1 - (width - 1) // 2 if head is None else head
    tail = width - 1 - head
    left, right = text[:head], text[len(text) - tail :]
    while cells(left) > head:
        left = left[:-1]
    while cells(right) > tail:
        right = right[1:]
    return f"{left}{ELLIPSIS}{right}"


def distinct_head(texts: Collection[str], width: int) -> int | None:
    """Where to put the ellipsis so that no two of the texts read the same: the `head` of `fit` nearest to the middle.

    Args:
        texts: Texts that differ.
        width: Columns that each may take.

    Returns:
        None where no place does.

    >>> distinct_head(["blocks.0.conv.weight", "blocks.1.conv.weight"], 12)
    8
    """
    middle = width - 1 - (width - 1) // 2
    places = sorted(range(1, width - 1), key=lambda head: abs(head - middle))
    return next((head for head in places if _distinct(texts, width, head)), None)


def _distinct(texts: Collection[str], width: int, head: int) -> bool:
    seen: set[str] = set()
    for text in texts:
        shown = fit(text, width, head)
        if shown in seen:
            return False
        seen.add(shown)
    return True


def wrapped(text: str, width: int, *, first: str = "", rest: str = "  ") -> list[str]:
    """A paragraph in lines of at most `width` columns, with a prefix before the first and one before the others.

    Lines break at blanks; a word that is wider than a line is cut. A command stays on one line, however wide: else it could not be
    copied.

    >>> wrapped("one two three", 9, first="- ", rest="  ")
    ['- one two', '  three']
    >>> wrapped("see why: sparsegate gate RUN; then release", 20)
    ['see why:', '  sparsegate gate RUN;', '  then release']
    """
    lines, line, used = [], first, False
    whole = COMMAND.sub(lambda match: match[0].replace(" ", _KEPT), safe(text))
    for word in _pieces(whole, max(1, width - max(cells(first), cells(rest)))):
        if used and cells(line) + 1 + cells(word) > width:
            lines.append(line.rstrip())
            line, used = rest, False
        if word or used:
            line, used = f"{line}{' ' if used else ''}{word}", True
    return [made.replace(_KEPT, " ") for made in (*lines, line.rstrip())]


def page(blocks: Iterable[Sequence[str]]) -> str:
    r"""Blocks of lines with a blank line between them; those that say nothing are left out.

    >>> page([["# Title"], [""], [], ["one", "two"]])
    '# Title\n\none\ntwo\n'
    """
    return "\n\n".join("\n".join(block) for block in blocks if any(block)) + "\n"


_WORD = r"(?:'[^']*'|[^\s;,()']|,(?=\S))+(?![^\s;,()])"
COMMAND = re.compile(rf"\bsparsegate (?:run|report|gate|explain|runs|check|prune|tactics|diff)(?: {_WORD})+")
"""A proposed command in prose: it ends before a semicolon, a comma or a bracket."""
_KEPT = "\0"
"""Stands for a blank at which no line breaks: `safe` leaves none of it in a text."""


def _pieces(text: str, room: int) -> Iterator[str]:
    """Words of a text, those that are wider than `room` in pieces; two blanks in a row give an empty word."""
    for word in text.split(" "):
        while cells(word) > room and _KEPT not in word:
            head = _head(word, room)
            yield head
            word = word[len(head) :]
        yield word


def _head(text: str, width: int) -> str:
    """The longest beginning of at most `width` columns, one character at least."""
    size = 0
    for at, char in enumerate(text):
        size += cells(char)
        if size > width and at:
            return text[:at]
    return text


def number(value: float | int | None, unit: str = "") -> str:
    """Whole numbers in full, others to four significant digits, never with fewer than the whole part; `?` for nothing.

    >>> number(1.01234, "x"), number(1234567, "bytes"), number(None), number(0.00012345), number(12345.6)
    ('1.012x', '1234567 bytes', '?', '0.0001234', '12346')
    """
    if value is None:
        return "?"
    whole = abs(value) < 1e15 and (float(value).is_integer() or abs(value) >= 1000)
    shown = f"{value:.0f}" if whole else f"{value:.4g}"
    return f"{shown}{unit}" if unit in ("", "x", "%") else f"{shown} {unit}"


def interval(low: float | None, high: float | None) -> str:
    """`[0.98, 1.03]`, with `?` at an open end; empty without both."""
    return "" if low is None and high is None else f"[{number(low)}, {number(high)}]"


def told(many: int | None, unknown: int, *, of: int | None = None, disputed: int = 0) -> str:
    """A count of layers as a cell: `-` where nothing is known, which is not 0.

    >>> told(3, 0), told(3, 2, of=5), told(None, 5, of=5), told(0, 0, of=4, disputed=1)
    ('3', '3 of 5 (2 unknown)', '-', '0 of 4 (1 disputed)')
    """
    if many is None:
        return "-"
    whole = str(many) if of is None else f"{many} of {of}"
    more = [f"{number} {word}" for number, word in ((disputed, "disputed"), (unknown, "unknown")) if number]
    return f"{whole} ({', '.join(more)})" if more else whole


def count(many: int, one: str, more: str | None = None) -> str:
    """`1 layer`, `2 layers`."""
    return f"{many} {one if many == 1 else more or one + 's'}"
