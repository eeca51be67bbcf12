"""From raw text to messages: prefixes off, torn lines apart, hard wraps joined."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from pipeline.tactics.builds import Message
from pipeline.tactics.forms import find_form
from pipeline.tactics.prefixes import EMBEDDED, Head, head
from pipeline.tactics.sparsity import Widths

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])")
_TRITON = re.compile(r":\d+\] $")
"""The end of the prefix behind which a message may stand as a JSON string."""
_MARGIN = " \t\n\r\f\v\0"
_MAX_FOLLOWERS = 4000
_SPARSITY = "(Sparsity)"
TORN_SIGNS = ("] [", "[TensorRT] ", "&&&& ")
"""Without one of these no line holds the prefix of another."""


def plain(line: str) -> str:
    """A physical line without colours, carriage return and the NULs around it."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    return line.strip("\0\r\n") if line[-1:] in ("\0", "\r", "\n") or line[:1] == "\0" else line


def unquote(text: str) -> tuple[list[str], bool]:
    """The lines of a message that was printed as a JSON string, and whether it has its end.

    Args:
        text: What stands behind the first quotation mark.
    """
    try:
        return msgspec.json.decode(f'"{text}', type=str).split("\n"), True
    except msgspec.DecodeError:
        return [text.removesuffix('"')], False


class _Pending(msgspec.Struct):
    """A message whose continuation may come."""

    line: int
    raw: str
    head: Head
    tail: int
    """Length of its last physical line."""
    whole: bool
    sparsity: bool
    joined: bool = False
    followers: list[str] = []
    full: int = 0
    """Length of its first physical line with the blanks at its end."""


class Joiner:
    """Turns the physical lines of one file into messages.

    Args:
        width: Columns at which the whole file is hard-wrapped; None where it is not.
        cut: The column at which each longer line of the file was cut; None where none was.
        seam: What is put where two lines are joined.
    """

    def __init__(self, width: int | None = None, cut: int | None = None, seam: str = "") -> None:
        self.width, self.cut, self.seam = width, cut, seam
        self.widths = Widths(known={width} if width else set())
        self._pending: _Pending | None = None
        self._process: str | None = None

    def feed(self, number: int, raw: str, *, ended: bool = True) -> Iterator[Message]:
        """Take one physical line; yield the messages that it completes.

        Args:
            number: From 1.
            raw: The line without its line feed.
            ended: False where the file ends without line feed here.
        """
        line = plain(raw)
        self.widths.see(len(line), number, line)
        pieces = torn(line)
        for i, piece in enumerate(pieces):
            last = i == len(pieces) - 1
            found = head(piece)
            if i == 0 and self._continues(piece, found):
                self._append(piece, ended=ended and last)
                continue
            yield from self.flush()
            self._begin(number, piece, found, whole=ended and last)

    @property
    def waiting(self) -> bool:
        """Whether a message may still be continued."""
        return self._pending is not None

    def flush(self) -> Iterator[Message]:
        """The message that was waiting for its continuation."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        found = head(pending.raw) if pending.joined else pending.head
        if found.process:
            self._process = found.process
        text, whole = pending.raw[found.end :].strip(_MARGIN), pending.whole
        if text.endswith("**") and not text.endswith("***"):
            text = text[:-2]
        texts = [text]
        if text.startswith('"') and _TRITON.search(pending.raw[: found.end]):
            texts, closed = unquote(text[1:])
            whole = whole and closed
        for i, text in enumerate(texts):
            yield Message(
                line=pending.line,
                text=text.strip(_MARGIN),
                width=pending.tail if not pending.joined else len(pending.raw),
                severity=found.severity,
                process=found.process or (self._process if not found.end else None),
                whole=whole or i < len(texts) - 1,
                followers=pending.followers,
                level=found.level,
                producer=found.producer,
                full=0 if pending.joined else pending.full,
            )

    def _begin(self, number: int, piece: str, found: Head, *, whole: bool) -> None:
        raw = piece.rstrip()
        if self.cut:  # the last character may be a blank
            whole = whole and len(raw) not in (self.cut, self.cut - 1)
        self._pending = _Pending(number, raw, found, columns(raw), whole, _SPARSITY in raw[found.end : found.end + 16], full=len(piece))

    def _continues(self, piece: str, found: Head) -> bool:
        """Whether a physical line may continue the pending message."""
        pending = self._pending
        if (
            pending is None
            or not pending.whole
            or not piece.strip()
            or found.severity
            or found.process
            or starts(piece[found.end :].lstrip())
        ):
            return False
        if self.width:
            return pending.tail in (self.width, self.width - 1) and columns(piece.rstrip()) <= self.width
        return pending.sparsity and len(pending.followers) < _MAX_FOLLOWERS

    def _append(self, piece: str, *, ended: bool) -> None:
        pending = self._pending
        assert pending is not None
        if self.width:
            body = piece.rstrip()
            pending.raw += " " * (self.width - pending.tail) + self.seam + body
            pending.tail, pending.joined = columns(body), True
        else:
            pending.followers.append(piece)
        pending.whole = ended


_CUT_BEGINNING = re.compile(r"Layer\(\w+\): |Name: .*, LayerType: ")
"""Beginnings of long messages, whose form shows only further on."""


def starts(text: str) -> bool:
    """Whether a text without prefix begins a message of its own."""
    return _CUT_BEGINNING.match(text) is not None or text.startswith("&&&& ") or find_form(text) is not None


def torn(line: str) -> list[str]:
    """A physical line, cut where another message's prefix stands in its middle."""
    if "\r" in line:
        return [piece for part in line.split("\r") for piece in torn(part)]
    if not any(sign in line for sign in TORN_SIGNS):
        return [line]
    first = head(line).end
    cuts = [match.start() for match in EMBEDDED.finditer(line, first) if match.start() > first]
    if not cuts:
        return [line]
    return [line[a:b] for a, b in zip([0, *cuts], [*cuts, len(line)]) if line[a:b].strip()]


def detect_width(lines: list[str]) -> tuple[int | None, str]:
    """The column at which a whole text is hard-wrapped: nearly all lines that go on in the next one are that long, and few are longer.

    Where each of them ends with a blank, which nothing here counts, that blank is the last column. One line that is longer, since
    another was torn into it, is no other width; without such exceptions two lines must go on. Blanks that fill all lines to one
    column behind the width are padding.

    Args:
        lines: Without line feeds, as `plain` leaves them.

    Returns:
        The width, None where the text is not wrapped; and what is to stand where lines are joined: `UNSURE` where blanks behind
        them may be padding, or one of them the text's last.
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


BLANKS = 3
"""So many full lines do not all end with a blank by chance: it is padding."""
UNSURE = "\ufffd"
"""What no name holds."""


def _going_on(lines: list[str]) -> Iterator[int]:
    """Indices of the lines behind which one stands that begins no message."""
    prefix = None  # of the last line that had one: most lines have the same
    for i, following in enumerate(lines[1:]):
        if not following or (prefix and following.startswith(prefix)):
            continue
        found = head(following)
        if found.severity or found.process:
            prefix = following[: found.end]
        elif not starts(following[found.end :].lstrip()):
            yield i


BROKEN_FORMS = ("combination-cut", "runner-cut")
BROKEN_LINES = 2
"""Lines of the longest length that break off within their form: from here on a text counts as cut at their column."""


def detect_cut(lines: list[str]) -> int | None:
    """The column at which a whole text was cut: its longest lines, as `plain` leaves them, break off within their form."""
    column = max(map(len, lines), default=0)
    broken = sum(_breaks_off(line[head(line).end :]) for line in lines if len(line) == column)
    return column if broken >= BROKEN_LINES else None


def _breaks_off(text: str) -> bool:
    found = find_form(text)
    return found[0] in BROKEN_FORMS if found else text.startswith(TIMED)


TIMED = "Tact"
"""What stands in a line that times a tactic, at the beginning of most."""
LONGEST = 100
"""Characters of a message `Fastest Tactic: ...` or `R has no valid tactics ...`: a longer one has another at its end."""
OUTLIERS = 10
"""So many lines of a wrapped text allow one that is longer than its width."""


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


def begins(line: str) -> bool:
    """Whether a physical line begins a message: by its prefix, or by its form."""
    found = head(line)
    return bool(found.severity or found.process) or starts(line[found.end :].lstrip())
