"""From raw text to messages: prefixes off, torn lines apart, hard wraps joined."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from pipeline.tactics.builds import Message
from pipeline.tactics.folding import UNSURE, Folding, columns, starts
from pipeline.tactics.parts import Parts
from pipeline.tactics.prefixes import EMBEDDED, Head, head
from pipeline.tactics.raw_lists import Widths

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
    last: str
    """Its last physical line."""
    whole: bool
    sparsity: bool
    joined: bool = False
    followers: list[str] = []
    full: int = 0
    """Length of its first physical line with the blanks at its end."""

    @property
    def tail(self) -> int:
        """Length of its last physical line."""
        return columns(self.last)


class Joiner:
    """Turns the physical lines of one file into messages.

    Args:
        folding: What was done to all lines of the file.
    """

    def __init__(self, folding: Folding | None = None) -> None:
        folding = folding or Folding()
        self.width, self.cut, self.seam = folding.width, folding.cut, folding.seam
        self.widths = Widths(known={self.width} if self.width else set())
        self._pending: _Pending | None = None
        self._process: str | None = None
        self.parts = Parts()

    def feed(self, number: int, raw: str, *, ended: bool = True) -> Iterator[Message]:
        """Take one physical line; yield the messages that it completes.

        Args:
            number: From 1.
            raw: The line without its line feed.
            ended: False where the file ends without line feed here.
        """
        whole = self.parts.take(raw)
        if whole is None:
            return
        line = plain(whole)
        if "\r" not in line:
            yield from self._feed(number, line, ended=ended)
            return
        shown = [part for part in line.split("\r") if part.strip()]  # one over the other, as progress bars are
        for i, part in enumerate(shown):
            yield from self._feed(number, part, ended=ended or i < len(shown) - 1)

    def end(self, number: int) -> Iterator[Message]:
        """What is left at the end of the file, whose last line has this number."""
        for part in self.parts.rest():
            yield from self._feed(number, plain(part), ended=False)
        yield from self.flush()

    def _feed(self, number: int, line: str, *, ended: bool) -> Iterator[Message]:
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
        self._pending = _Pending(number, raw, found, raw, whole, _SPARSITY in raw[found.end : found.end + 16], full=len(piece))

    def _continues(self, piece: str, found: Head) -> bool:
        """Whether a physical line may continue the pending message."""
        pending = self._pending
        if (
            pending is None
            or not pending.whole
            or not piece.strip()
            or found.severity
            or found.process
            or starts(piece[found.end :].lstrip(), behind_prefix=pending.head.end > 0 and not found.end)
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
            blank = " " if "\0" not in pending.last else UNSURE
            pending.raw += blank * (self.width - pending.tail) + self.seam + body
            pending.last, pending.joined = body, True
        else:
            pending.followers.append(piece)
        pending.whole = ended


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
