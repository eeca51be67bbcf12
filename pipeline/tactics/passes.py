"""Several Found/Chose pairs in one build: which stand, what they say of each layer, and where they contradict."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pipeline.records.rung import Rung
from pipeline.records.tactics import Conflict, Truncated
from pipeline.tactics.names import profile_of
from pipeline.tactics.settle import agrees
from pipeline.tactics.sparsity import Listed, Pair

MAX_COMPARED = 16
"""Passes that one pass is compared with: no build prints so many that overlap, and a damaged file must not cost their square."""


class Vote(msgspec.Struct, frozen=True, gc=False):
    """What one message says of one layer."""

    rung: Rung
    line: int
    source: int
    says: str


class Said(msgspec.Struct):
    """What the summary says of one layer."""

    name: str
    profile: int | None
    eligible: list[Vote] = []
    selected: list[Vote] = []


class Summary(msgspec.Struct):
    """The summary of one build, over all its passes."""

    layers: dict[str, Said] = {}
    conflicts: list[Conflict] = []
    lists_eligible: dict[int | None, bool] = {}
    """Profile -> whether every standing eligible list is complete: then what it omits is not eligible."""
    lists_selected: dict[int | None, bool] = {}
    pairs: list[Pair] = []
    truncated: list[Truncated] = []

    def omits(self, profile: int | None, table: dict[int | None, bool]) -> bool:
        """Whether a complete list for this profile exists."""
        return table.get(profile or None, False)


def layer_id(name: str, profile: int | None) -> str:
    """A layer's id: its name; layers of later profiles carry TensorRT's own suffix."""
    return f"{name} [profile {profile}]" if profile and profile_of(name)[1] is None else name


def summarise(pairs: list[Pair], profiles: int, *, disabled: bool = False) -> Summary:
    """Judge the passes of one build.

    Args:
        pairs: In the order of the log; `superseded_by` is set here.
        profiles: Number of optimization profiles that the log shows.
        disabled: Whether the build's options say that sparsity was off: then no layer can have been chosen.
    """
    several = profiles > 1 or len({pair.profile for pair in pairs if pair.profile is not None}) > 1
    if several:
        _number_profiles(pairs)
    else:
        _supersede(pairs)
    summary = Summary(pairs=pairs)
    standing = [pair for pair in pairs if pair.superseded_by is None]
    for pair in standing:
        _vote(summary, pair, pair.profile if several else None)
        _check_counts(summary, pair, pair.profile if several else None)
        if disabled and (chosen := pair.selected) and chosen.names:
            text = f"line {chosen.raw.line}: chosen, but the options of the build say that sparsity was disabled"
            _dispute(summary, "option-and-list-disagree", chosen.names, pair.profile if several else None, text, chosen, on_eligible=False)
    for one, other in _sharing(standing):
        if not several or (one.profile or 0) == (other.profile or 0):
            _compare(summary, one, other, one.profile if several else None)
    return summary


def _number_profiles(pairs: list[Pair]) -> None:
    if any(pair.profile is not None for pair in pairs):
        return
    for number, pair in enumerate(pairs):
        pair.first.profile = number


def _names(listed: Listed | None) -> set[str]:
    return set(listed.names) if listed else set()


def _supersede(pairs: list[Pair]) -> None:
    """A later pair with the same eligible set replaces the earlier one, unless only the earlier one has its chosen list."""
    standing: dict[frozenset[str], list[Pair]] = {}
    for j, later in enumerate(pairs):
        if later.eligible is None or not later.eligible.names:
            continue
        same = standing.setdefault(frozenset(later.eligible.names), [])
        for earlier in same:
            if later.selected is not None or earlier.selected is None:
                earlier.superseded_by = j
        same[:] = [*(earlier for earlier in same if earlier.superseded_by is None), later]


def _sharing(pairs: list[Pair]) -> Iterator[tuple[Pair, Pair]]:
    """Pairs of passes that list a layer in common, each with at most the last MAX_COMPARED before it."""
    by_name: dict[str, list[int]] = {}
    for j, pair in enumerate(pairs):
        names = pair.eligible.names if pair.eligible else []
        before = {i for name in names for i in by_name.get(name, ())[-MAX_COMPARED:]}
        yield from ((pairs[i], pair) for i in sorted(before)[-MAX_COMPARED:])
        for name in names:
            by_name.setdefault(name, []).append(j)


def _said(summary: Summary, name: str, profile: int | None) -> Said:
    return summary.layers.setdefault(layer_id(name, profile), Said(name, profile))


def _vote(summary: Summary, pair: Pair, profile: int | None) -> None:
    key = profile or None
    eligible, selected = pair.eligible, pair.selected
    if eligible:
        summary.lists_eligible[key] = summary.lists_eligible.get(key, True) and eligible.complete
        for name in eligible.names:
            vote = Vote(Rung.YES, eligible.raw.line, eligible.raw.source, "listed as eligible")
            _said(summary, name, profile).eligible.append(vote)
    if selected is None:
        if eligible:
            summary.lists_selected[key] = False
        return
    summary.lists_selected[key] = summary.lists_selected.get(key, True) and selected.complete
    raw = selected.raw
    for name in selected.names:
        _said(summary, name, profile).selected.append(Vote(Rung.YES, raw.line, raw.source, "listed as chosen"))
    chosen, found = set(selected.names), eligible.names if eligible else []
    if selected.complete and chosen <= set(found):  # else it may be the list of another pass or build
        for name in found:
            if name not in chosen:
                _said(summary, name, profile).selected.append(Vote(Rung.NO, raw.line, raw.source, "not in the list of chosen layers"))


def _contradicts_itself(listed: Listed) -> bool:
    """Whether the number differs from the list. A list that lacks names may be shorter than its number, but never longer."""
    if listed.complete:
        return not agrees(listed.declared, listed.names)
    return listed.declared is not None and len(listed.names) > listed.declared


def _check_counts(summary: Summary, pair: Pair, profile: int | None) -> None:
    """Number and list of one message contradict each other: neither is believed."""
    eligible, selected = pair.eligible, pair.selected
    if eligible and _contradicts_itself(eligible):
        text = f"line {eligible.raw.line}: found {eligible.declared} layer(s), but the list has {len(eligible.names)}"
        _dispute(summary, "count-and-list-disagree", eligible.names, profile, text, eligible, on_eligible=True)
        summary.lists_eligible[profile or None] = False
    if selected and _contradicts_itself(selected):
        more_than_listed = (selected.declared or 0) > len(selected.names)
        names = [*selected.names, *(eligible.names if eligible and more_than_listed else [])]
        text = f"line {selected.raw.line}: chose {selected.declared} layer(s), but the list has {len(selected.names)}"
        _dispute(summary, "count-and-list-disagree", list(dict.fromkeys(names)), profile, text, selected, on_eligible=False)
    if eligible and selected and eligible.complete:
        found = set(eligible.names)
        odd = [name for name in selected.names if name not in found]
        if odd:
            text = f"line {selected.raw.line}: chosen, but not in the list of eligible layers of line {eligible.raw.line}"
            _dispute(summary, "chosen-but-not-eligible", odd, profile, text, selected, on_eligible=True)
            for name in odd:  # one of the two lists is cut or wrong, and it may be this one
                _said(summary, name, profile).selected.append(Vote(Rung.DISPUTED, selected.raw.line, selected.raw.source, text))


def _dispute(summary: Summary, code: str, names: list[str], profile: int | None, text: str, listed: Listed, *, on_eligible: bool) -> None:
    for name in names:
        said = _said(summary, name, profile)
        votes = said.eligible if on_eligible else said.selected
        votes.append(Vote(Rung.DISPUTED, listed.raw.line, listed.raw.source, text))
    summary.conflicts.append(Conflict(code=code, layers=[layer_id(name, profile) for name in names], text=text))


def _compare(summary: Summary, one: Pair, other: Pair, profile: int | None) -> None:
    """Two standing passes whose eligible sets overlap: the layers on which they differ are disputed."""
    if not one.eligible or not other.eligible:
        return
    common = _names(one.eligible) & _names(other.eligible)
    if not common:
        return
    for a, b in ((one, other), (other, one)):
        assert a.eligible is not None and b.eligible is not None
        only = [name for name in a.eligible.names if name not in common] if b.eligible.complete else []
        if only:
            text = f"eligible at line {a.eligible.raw.line}, not at line {b.eligible.raw.line}, which lists some of the same layers"
            _dispute(summary, "passes-disagree", only, profile, text, b.eligible, on_eligible=True)
            for name in only:
                if name in _names(a.selected):
                    _said(summary, name, profile).selected.append(Vote(Rung.DISPUTED, b.first.line, b.first.source, text))
    if one.selected and other.selected:
        differ = [
            name
            for name in one.eligible.names
            if name in common
            and (name in _names(one.selected)) != (name in _names(other.selected))
            and (one if name in _names(other.selected) else other).selected.complete  # type: ignore[union-attr]
        ]
        if differ:
            text = f"chosen by one of the passes of lines {one.first.line} and {other.first.line}, not by the other"
            _dispute(summary, "passes-disagree", differ, profile, text, other.selected, on_eligible=False)


def settle(votes: list[Vote]) -> Rung:
    """One rung from what several messages say."""
    said = {vote.rung for vote in votes}
    if not said:
        return Rung.UNKNOWN
    if Rung.DISPUTED in said or len(said) > 1:
        return Rung.DISPUTED
    return said.pop()
