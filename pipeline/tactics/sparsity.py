"""The `(Sparsity)` messages, read: names, those in doubt, and what was cut; and pairs of lists, which are passes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

import msgspec

from pipeline.records.tactics import Pass, Truncated
from pipeline.tactics.names import is_damaged, profile_of, split_list, unique
from pipeline.tactics.raw_lists import WORDING, RawList, Widths, joined_text

_BOLD = re.compile(r"(?<!\*)\*\*(?!\*)")


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


def read_list(raw: RawList, widths: Widths) -> Listed | None:
    """Split one message into names; None where its wording is cut or unknown."""
    text, joined = joined_text(raw, widths)
    if joined is None and not WORDING.match(raw.text) and not WORDING.match(text):
        return None
    if joined is None:
        return _read_uncertain(raw, text)
    return _read_text(raw, text, whole=raw.whole and not widths.cuts(raw))


def _read_text(raw: RawList, text: str, *, whole: bool) -> Listed | None:
    text = _BOLD.sub("", text)
    match = WORDING.match(text)
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
        joined_text(raw, widths)  # learns widths that shorter messages cannot show
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
