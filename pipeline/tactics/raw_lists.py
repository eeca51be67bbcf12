"""The `(Sparsity)` messages as they stand in the file: whether the lines behind one continue it, and where all lines were cut."""

from __future__ import annotations

import re

import msgspec

from pipeline.tactics.names import is_damaged, split_list

WORDING = re.compile(
    r"\(Sparsity\) (?:"
    r"(?P<old_eligible>Layers eligible for sparse math):|"
    r"(?P<old_selected>TRT inference plan picked sparse implementation for layers):|"
    r"Found (?P<found>\d{1,9}) layer\(s\) eligible to use sparse tactics:|"
    r"Chose (?P<chose>\d{1,9}) layer\(s\) using sparse tactics:)"
)
CUT_FROM_LINES = 3
"""Lines of the longest length, among them a summary message, from which on a file counts as cut at a column."""
_PASSES: tuple[set[int | str], ...] = ({"L", "T"}, {"F", "C"})
"""First letters of a pass's two messages: where both are of the longest length, it is one at which lines were cut."""
_FIRST = {"L": "eligible", "F": "eligible", "T": "selected", "C": "selected"}


class RawList(msgspec.Struct):
    """One summary message as it stands in the file."""

    source: int
    line: int
    text: str
    """From `(Sparsity)` to the end of its first physical line, or of all that a known wrap width joins to it."""
    width: int
    """Length of the first physical line with its prefix, without blanks at its end."""
    whole: bool = True
    """False where the line itself was cut: end of the file, torn by another message, `...`."""
    followers: list[str] = []
    """Lines behind it without prefix: perhaps its continuation."""
    profile: int | None = None
    region: str | None = None
    full: int = 0
    """Length of the first physical line with the blanks at its end; 0 where lines were joined."""

    @property
    def kind(self) -> str | None:
        """`eligible`, `selected`, or None where the text breaks off before it tells."""
        return _FIRST.get(self.text[len("(Sparsity) ") : len("(Sparsity) ") + 1])


class Widths(msgspec.Struct):
    """What the whole file tells about hard wraps."""

    longest: int = 0
    """Length of the longest physical line."""
    known: set[int] = set()
    """Widths at which several lines in a row are continued."""
    fullest: set[int | str] = set()
    """Some of the lines of the longest length: their numbers, and one letter for all summary messages of a kind, which may come again."""

    def see(self, length: int, number: int, text: str) -> None:
        """Take in one physical line; again and in any order, the same lines give the same."""
        if length < self.longest or (length == self.longest and len(self.fullest) >= CUT_FROM_LINES):
            return
        if length > self.longest:
            self.longest, self.fullest = length, set()
        at = text.find("(Sparsity) ")
        self.fullest.add(number if at < 0 else text[at + 11 : at + 12])

    def join(self, other: Widths) -> None:
        """Take in what was seen elsewhere in the same file."""
        if other.longest > self.longest:
            self.longest, self.fullest = other.longest, set()
        if other.longest == self.longest:
            self.fullest |= other.fullest

    def cuts(self, raw: RawList) -> bool:
        """Whether each line of the file was cut at the column at which this message ends: others are just as long, and none is longer."""
        padded = raw.full - raw.width > 1
        both = any(pass_ <= self.fullest for pass_ in _PASSES)
        alike = both or len(self.fullest) >= CUT_FROM_LINES
        return raw.full == self.longest > 0 and alike and self.longest not in self.known and not padded


_FOREIGN = re.compile(
    "|".join(
        (
            r"(?:^| )[a-z]{2,} [a-z]{2,}",  # prose
            r"^[A-Z][a-z]+(?:[.!]?$| [a-z\d])",  # `Done`, `Engine saved`, `Epoch 1/10`
            r"^[A-Z]+ [A-Z]+$",  # `ENGINE OK`
            r"\w: |\w=[\w.]",  # `loss: 0.3`, `loss=0.3`
            r"['\"\t]|\(\[| -> ",  # what Python prints of its objects
            r"\d%",  # a progress bar
            r"^([-=_#*~])\1{2}",  # a rule
            r"^[$#>] |^\w+@[\w.-]+:|^\+\+ |^\* [a-z]",  # a shell
            r"^\[[a-z]+\] [a-z]",  # another program's prefix
            r"^[\w./-]*\.(?:engine|plan|trt|onnx)$|\bwarnings\.warn\(",
        )
    )
)
"""What another program printed behind a list: no name goes on so."""


def _may_go_on(text: str, follower: str) -> bool:
    """Whether a list may have been broken before this line: then no name is damaged where they meet."""
    met = split_list(WORDING.sub("", text + follower.rstrip()))
    at = len(split_list(WORDING.sub("", text)).names) - 1
    return not (0 <= at < len(met.names) and is_damaged(met.names[at]))


def _is_foreign(raw: RawList) -> bool:
    """Whether the line behind a list is evidently none of it: another program's, or a name behind a list that has none by its number."""
    follower = raw.followers[0].strip()
    match = WORDING.fullmatch(raw.text.rstrip())
    none = match is not None and (match["found"] or match["chose"]) == "0"
    return _FOREIGN.search(follower) is not None or (none and not follower.startswith(","))


def joined_text(raw: RawList, widths: Widths) -> tuple[str, bool | None]:
    """The message's text over its followers, and whether they are its continuation (None: cannot be told).

    A full line is as long as the wrap is wide, or one less where the blank at its end was stripped.
    """
    if not raw.followers:
        return raw.text, True
    known = {raw.width, raw.width + 1} & widths.known
    padded = raw.full - raw.width > 1 or any(len(line) - len(line.rstrip()) > 1 for line in raw.followers)
    first = len(raw.followers[0].rstrip())
    if not known and not padded and first not in (raw.width, raw.width - 1) and _is_foreign(raw):
        return raw.text, False
    if raw.width + 1 < widths.longest and not known and not padded:
        return (raw.text + raw.followers[0].rstrip(), None) if _may_go_on(raw.text, raw.followers[0]) else (raw.text, False)
    width = max(known) if known else max(raw.width, first) if first - raw.width == 1 else raw.width
    text, tail, full, length = raw.text, raw.width, 0, raw.full
    for follower in raw.followers:
        body = follower.rstrip()
        if tail not in (width, width - 1):
            break
        if len(body) > width:
            return (raw.text, False) if full == 0 else (text, None)
        text += " " * max(width - tail, 0 if padded else min(1, length - tail)) + body
        tail, length = len(body), len(follower)
        full += 1 if tail in (width, width - 1) else 0
    if full or known:
        widths.known.add(width)
        return text, True
    return text, None
