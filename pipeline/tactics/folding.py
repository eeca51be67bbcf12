"""How the lines of a whole text were folded after they were written: wrapped at a width, padded behind it, or cut at a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from pipeline.tactics.forms import FREE_FORMS, find_form
from pipeline.tactics.names import open_brackets
from pipeline.tactics.prefixes import head

_BEGINNINGS = re.compile(r"&&&& |Layer\(\w+\): |Name: .*, LayerType: ")
"""Beginnings of messages, whose form shows only further on."""
_CUT_BEGINNINGS = re.compile(r"Name: [^,]*$|Tactic Name: |[*=>-]{9,} [A-Z]|\(Sparsity\)")
"""The same where lines are cut."""
_LONG = ("Tact", "Layer(", "Name: ", *(character * 9 for character in "*=>-"))
"""Beginnings of messages that have a form unless they were cut."""
_BROKEN_FORMS = ("combination-cut", "runner-cut")
_DUMP_FORMS = ("dump-8-layer", "dump-10-layer")
"""Their ends close all brackets."""
BLANKS = 3
"""So many full lines do not all end with a blank by chance: it is padding."""
OUTLIERS = 10
"""So many lines of a wrapped text allow one that is longer than its width."""
UNSURE = "\ufffd"
"""What no name holds."""


class Folding(msgspec.Struct, frozen=True):
    """What was done to all lines of a text."""

    width: int | None = None
    """The column at which it is hard-wrapped; None where it is not."""
    seam: str = ""
    """What is to stand where lines are joined: `UNSURE` where blanks behind them may be padding, or one of them the text's last."""
    cut: int | None = None
    """The column at which each longer line was cut; None where none was."""


def detect(lines: list[str]) -> Folding:
    """How a text was folded.

    Args:
        lines: Without line feeds, as `plain` leaves them.
    """
    cut = _cut(lines)
    if cut:
        return Folding(cut=cut)
    width, seam = _wrap(lines)
    return Folding(width, seam)


def _cut(lines: list[str]) -> int | None:
    """The length of the longest lines, if some of them break off within their form and most of these do not go on in the next line."""
    column = max(map(len, lines), default=0)
    full = [i for i, line in enumerate(lines) if len(line) == column]
    broken = [i for i in full if _breaks_off(lines[i])]
    answered = sum(begins(line, cut=True) for i in broken for line in lines[i + 1 : i + 2])
    return column if len(full) > 1 and 2 * answered > len(broken) else None


def _breaks_off(line: str) -> bool:
    """Whether a line is the beginning of a message of a known form."""
    text = line[head(line).end :].strip()
    found = find_form(text)
    if found is None:
        return text.startswith(_LONG)
    return found[0] in _BROKEN_FORMS or (found[0] in _DUMP_FORMS and open_brackets(text) > 0)


def _wrap(lines: list[str]) -> tuple[int | None, str]:
    """The width of a wrapped text: nearly all lines that go on in the next one are that long, and few are longer.

    Where each of them ends with a blank, which nothing here counts, that blank is the last column. One line that is longer, since
    another was torn into it, is no other width; without such exceptions two lines must go on. Blanks that fill all lines to one
    column behind the width are padding.
    """
    bodies = [line.rstrip() for line in lines]
    lengths = list(map(columns, bodies))
    going_on = [i for i in _going_on(bodies) if lengths[i]]
    width = _commonest([lengths[i] for i in going_on], longest=max(lengths, default=0))
    full = [i for i in going_on if lengths[i] in (width, width - 1)]
    if len(full) < 2 or sum(length > width for length in lengths) > len(full) // OUTLIERS:
        return None, ""
    blank = sum(lengths[i] == width < columns(lines[i]) for i in full)
    if blank < len(full):
        return width, ""
    column = max(map(columns, lines))
    if not any(columns(line) == column > length + 1 for line, length in zip(lines, lengths)):
        return width + 1, ""
    return width, "" if blank >= BLANKS else UNSURE


def _going_on(lines: list[str]) -> Iterator[int]:
    """Indices of the lines behind which one stands that begins no message."""
    prefix = None  # of the last line that had one: most lines have the same
    for i, following in enumerate(lines[1:]):
        if not following or (prefix and following.startswith(prefix)):
            continue
        found = head(following)
        if found.severity or found.process:
            prefix = following[: found.end]
        elif not starts(following[found.end :].lstrip(), behind_prefix=prefix is not None and not found.end):
            yield i


def _commonest(lengths: list[int], *, longest: int) -> int:
    """The length that most of the lines have, of those that a blank at the end may have made one shorter; the longest where few do."""
    count = Counter(lengths)
    width = max(count, key=lambda length: (count[length], length), default=longest)
    if count[width + 1] and width + 1 == longest:
        width += 1 if count[width + 1] * OUTLIERS >= count[width] else 0
    return width if count[width] * 2 > len(lengths) or width == longest else longest


def columns(text: str) -> int:
    """How wide a line was shown: a NUL takes no column, and bold marks around it came later."""
    marks = len(_BOLD.findall(text)) if "**" in text else 0
    return len(text) - text.count("\0") - 2 * marks


_BOLD = re.compile(r"^\*\*(?!\*)|(?<!\*)\*\*$")


def starts(text: str, *, behind_prefix: bool = False) -> bool:
    """Whether a text without prefix begins a message of its own.

    Args:
        text: Without the blanks before it.
        behind_prefix: Whether the line before has a prefix: then a message that begins with some name would have one too.
    """
    if _BEGINNINGS.match(text):
        return True
    found = find_form(text)
    return found is not None and not (behind_prefix and found[0] in FREE_FORMS)


def begins(line: str, *, cut: bool = False) -> bool:
    """Whether a physical line begins a message: by its prefix, or by its form, of which the end may be cut off."""
    found = head(line)
    text = line[found.end :].lstrip()
    return bool(found.severity or found.process) or starts(text) or (cut and _CUT_BEGINNINGS.match(text) is not None)
