"""The `(Sparsity)` messages: from raw lines, perhaps wrapped or cut, to passes of names that can be trusted."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from typing import Protocol

import msgspec

from pipeline.records.tactics import Pass, Truncated
from pipeline.tactics.names import is_damaged, leaves, parts, profile_of, split_list, unique

_WORDING = re.compile(
    r"\(Sparsity\) (?:"
    r"(?P<old_eligible>Layers eligible for sparse math):|"
    r"(?P<old_selected>TRT inference plan picked sparse implementation for layers):|"
    r"Found (?P<found>\d{1,9}) layer\(s\) eligible to use sparse tactics:|"
    r"Chose (?P<chose>\d{1,9}) layer\(s\) using sparse tactics:)"
)
_BOLD = re.compile(r"(?<!\*)\*\*(?!\*)")
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


class Listed(msgspec.Struct):
    """A summary message, read."""

    raw: RawList
    declared: int | None
    names: list[str]
    doubtful: list[str] = []
    """Names that touch a cut or an uncertain join: they count only if another source has exactly them."""
    complete: bool = True
    """Whether the list lacks nothing: only then does it say anything of the layers that it omits."""
    cut: list[str] = []
    """Text that is no name."""
    last: str | None = None
    """The last of `names` where nothing follows it: if the message was cut there, so was the name."""
    parted: bool = False
    """Whether a message that could not be read stands between it and the one before."""


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


def _join(raw: RawList, widths: Widths) -> tuple[str, bool | None]:
    """The message's text over its followers, and whether they are its continuation (None: cannot be told).

    A full line is as long as the wrap is wide, or one less where the blank at its end was stripped.
    """
    if not raw.followers:
        return raw.text, True
    known = {raw.width, raw.width + 1} & widths.known
    padded = raw.full - raw.width > 1 or any(len(line) - len(line.rstrip()) > 1 for line in raw.followers)
    if raw.width + 1 < widths.longest and not known and not padded:
        return (raw.text + raw.followers[0].rstrip(), None) if _may_go_on(raw.text, raw.followers[0]) else (raw.text, False)
    first = len(raw.followers[0].rstrip())
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


_PROSE = re.compile(r"(?:^| )[a-z]{2,} [a-z]{2,}|: |^[A-Z][a-z]+[.!]?$")


def _may_go_on(text: str, follower: str) -> bool:
    """Whether a list may have been broken before this line: then no name is damaged where they meet."""
    if _PROSE.search(follower.strip()):
        return False
    met = split_list(_WORDING.sub("", text + follower.rstrip()))
    at = len(split_list(_WORDING.sub("", text)).names) - 1
    return not (0 <= at < len(met.names) and is_damaged(met.names[at]))


def read_list(raw: RawList, widths: Widths) -> Listed | None:
    """Split one message into names; None where its wording is cut or unknown."""
    text, joined = _join(raw, widths)
    if joined is None and not _WORDING.match(raw.text) and not _WORDING.match(text):
        return None
    if joined is None:
        return _read_uncertain(raw, text)
    return _read_text(raw, text, whole=raw.whole and not widths.cuts(raw))


def _read_text(raw: RawList, text: str, *, whole: bool) -> Listed | None:
    text = _BOLD.sub("", text)
    match = _WORDING.match(text)
    if match is None:
        return None
    number = match["found"] or match["chose"]
    body, torn, _ = text[match.end() :].lstrip(", ").partition("(Sparsity)")
    whole = whole and not torn
    if body.rstrip().endswith("…"):
        body = body.rstrip()[:-1] + "..."
    split = split_list(body)
    names = unique(split.names)
    complete = whole and split.rest is None and not split.unopened and not body.rstrip().endswith(",")
    listed = Listed(raw, int(number) if number else None, names, complete=complete, cut=[*split.unopened])
    if split.rest is not None:
        listed.cut.append(split.rest)
    if not whole and split.touches_end and names:
        listed.doubtful.append(listed.names.pop())
    broken = [name for name in listed.names if is_damaged(name) or name.endswith("..")]
    if broken:
        listed.names = [name for name in listed.names if name not in broken]
        listed.cut += broken
        listed.complete = False
    if split.touches_end and listed.names and listed.names[-1] == split.names[-1]:
        listed.last = listed.names[-1]
    return listed


def _read_uncertain(raw: RawList, joined: str) -> Listed | None:
    """A single line that may or may not go on: names on which both readings agree stand, the others are doubtful."""
    short, long = _read_text(raw, raw.text, whole=True), _read_text(raw, joined, whole=True)
    if long is None:
        return None
    if short is None:
        long.doubtful, long.names, long.complete = long.names, [], False
        return long
    agreed = [name for name in short.names if name in set(long.names)]
    doubtful = [name for name in [*long.names, *short.names] if name not in set(agreed)]
    return Listed(raw, short.declared, agreed, unique(doubtful), complete=False, cut=[])


def confirm(listed: Listed, known: Known) -> None:
    """Take in the doubtful names that another source has exactly, and that are not the beginning of another known name."""
    for name in listed.doubtful:
        if name in known.names and known.longer(name) is None and name not in listed.names:
            listed.names.append(name)
        else:
            listed.cut.append(name)
    if listed.doubtful and not listed.cut and listed.declared is not None and agrees(listed.declared, listed.names):
        listed.complete = True
    listed.doubtful = []


def agrees(declared: int | None, names: list[str]) -> bool:
    """Whether a count fits its list: as the number of names, or of horizontally fused parts."""
    return declared is None or declared in (len(names), sum(len(parts(name)) for name in names))


class Known:
    """Names of layers, in which beginnings are found."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = frozenset(names)
        self._sorted = sorted(self.names)

    def longer(self, name: str) -> str | None:
        """A name that begins with this one and goes on."""
        at = bisect_right(self._sorted, name)
        found = self._sorted[at] if at < len(self._sorted) else ""
        return found if found.startswith(name) else None


class HasLists(Protocol):
    """A build, as far as this module knows it."""

    lists: list[RawList]


class Pair(msgspec.Struct):
    """A pass: what was eligible and what was chosen from it."""

    eligible: Listed | None = None
    selected: Listed | None = None
    superseded_by: int | None = None

    @property
    def first(self) -> RawList:
        """The message that stands first."""
        listed = self.eligible or self.selected
        assert listed is not None
        return listed.raw

    @property
    def profile(self) -> int | None:
        """The optimization profile, by the suffix of its names or as known from the log."""
        names = [*(self.eligible.names if self.eligible else []), *(self.selected.names if self.selected else [])]
        found = {profile_of(name)[1] for name in names}
        if len(found) == 1 and (only := found.pop()) is not None:
            return only
        return self.first.profile

    def record(self) -> Pass:
        """The pass as the report shows it."""
        return Pass(
            line=self.first.line,
            profile=self.profile,
            region=self.first.region,
            superseded_by=self.superseded_by,
            eligible_declared=self.eligible.declared if self.eligible else None,
            eligible=self.eligible.names if self.eligible else [],
            selected_declared=self.selected.declared if self.selected else None,
            selected=self.selected.names if self.selected else [],
        )


def pair_up(lists: Iterable[Listed]) -> list[Pair]:
    """Pairs of an eligible list and the chosen list that follows it, in the order of the log."""
    pairs: list[Pair] = []
    for listed in lists:
        if listed.raw.kind == "eligible":
            pairs.append(Pair(eligible=listed))
        elif pairs and pairs[-1].selected is None and not listed.parted:
            pairs[-1].selected = listed
        else:
            pairs.append(Pair(selected=listed))
    return pairs


def read_lists(log: HasLists, widths: Widths) -> tuple[list[Listed], list[Truncated]]:
    """A build's summary messages, read; and those whose wording breaks off."""
    for raw in log.lists:
        _join(raw, widths)  # learns widths that shorter messages cannot show
    lists, unread = [], []
    parted = False
    for raw in log.lists:
        listed = read_list(raw, widths)
        if listed is None:
            unread.append(Truncated(source=raw.source, line=raw.line, text=raw.text))
        else:
            listed.parted = parted
            lists.append(listed)
        parted = listed is None
    return lists, unread


def _seems_cut(listed: Listed, name: str, known: Known, lists: list[Listed]) -> bool:
    """Whether the last name of a list looks like a beginning: no other source has it, and names are missing or another one continues it."""
    elsewhere = [other.names for other in lists if other is not listed]
    if name in known.names or any(name in names for names in elsewhere):
        return False
    if listed.complete and (listed.declared or 0) > max(len(listed.names), sum(len(parts(name)) for name in listed.names)):
        return True
    if known.longer(name) or any(other.startswith(name) for names in elsewhere for other in names):
        return True
    leaf = leaves(name)[-1:]
    return any(_within_word(end, other) for end in leaf for one in listed.names for other in leaves(one))


def _within_word(beginning: str, text: str) -> bool:
    """Whether a text goes on behind a beginning within a word or a path."""
    if not text.startswith(beginning) or text == beginning:
        return False
    following = text[len(beginning)]
    return following == "/" or (following.isalpha() and beginning[-1].isalpha())


def settle_lists(lists: list[Listed], known: set[str]) -> list[Truncated]:
    """Take in the names at cuts that another source has; what is left is no name.

    Args:
        lists: All of one build.
        known: The names of its layers from other sources.
    """
    others = Known(known)
    for listed in lists:
        if listed.last in listed.names and _seems_cut(listed, listed.last, others, lists):
            listed.names.remove(listed.last)
            listed.doubtful.append(listed.last)
            listed.complete = False
    names = Known(known | {name for listed in lists for name in listed.names})
    for listed in lists:
        confirm(listed, names)
    return [Truncated(source=listed.raw.source, line=listed.raw.line, text=text) for listed in lists for text in listed.cut]
