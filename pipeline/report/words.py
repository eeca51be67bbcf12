"""Text that is safe to print, fits a width, and shows a number the same way everywhere."""

from __future__ import annotations

import unicodedata
from textwrap import wrap as _wrap

ELLIPSIS = "…"


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


def fit(text: str, width: int) -> str:
    """The text, or its beginning and end about an ellipsis: names of layers differ at both ends.

    >>> fit("backbone.layer4.conv2", 12)
    'backbo…conv2'
    """
    if cells(text) <= width:
        return text
    if width < 3:
        return text[:width]
    tail = (width - 1) // 2
    head = width - 1 - tail
    left, right = text[:head], text[len(text) - tail :]
    while cells(left) > head:
        left = left[:-1]
    while cells(right) > tail:
        right = right[1:]
    return f"{left}{ELLIPSIS}{right}"


def wrapped(text: str, width: int, *, first: str = "", rest: str = "  ") -> list[str]:
    """A paragraph in lines of at most `width`, with a prefix before the first and one before the others."""
    return _wrap(safe(text), max(width, 20), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [first.rstrip()]


def number(value: float | int | None, unit: str = "") -> str:
    """Whole numbers in full, others to four significant digits; `?` for nothing.

    >>> number(1.01234, "x"), number(1234567, "bytes"), number(None), number(0.00012345)
    ('1.012x', '1234567 bytes', '?', '0.0001234')
    """
    if value is None:
        return "?"
    shown = str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return f"{shown}{unit}" if unit in ("", "x", "%") else f"{shown} {unit}"


def interval(low: float | None, high: float | None) -> str:
    """`[0.98, 1.03]`, with `?` at an open end; empty without both."""
    return "" if low is None and high is None else f"[{number(low)}, {number(high)}]"


def count(many: int, one: str, more: str | None = None) -> str:
    """`1 layer`, `2 layers`."""
    return f"{many} {one if many == 1 else more or one + 's'}"
