"""Which names of the lists stand: those at a cut, and last ones that look like a beginning, only where another source has them."""

from __future__ import annotations

from collections import Counter

from pipeline.records.tactics import Truncated
from pipeline.tactics.names import Known, leaves, parts, profile_of
from pipeline.tactics.sparsity import Listed


def agrees(declared: int | None, names: list[str]) -> bool:
    """Whether a count fits its list: as the number of names, or of horizontally fused parts."""
    return declared is None or declared in (len(names), sum(len(parts(name)) for name in names))


def confirm(listed: Listed, known: Known) -> None:
    """Take in the doubtful names that another source has exactly, and that are not the beginning of another known name."""
    for name in listed.doubtful:
        if name in known.names and not known.is_beginning(name) and name not in listed.names:
            listed.names.append(name)
        else:
            listed.cut.append(name)
    if listed.doubtful and not listed.cut and listed.declared is not None and agrees(listed.declared, listed.names):
        listed.complete = True
    listed.doubtful = []


def _seems_cut(listed: Listed, name: str, known: Known, listings: Counter[str]) -> bool:
    """Whether the last name of a list looks like a beginning: only it has it, and names are missing or one that it lacks goes on so.

    Args:
        listed: The list.
        name: Its last name.
        known: The names of all sources.
        listings: In how many sources each of them is.
    """
    if listings[name] > 1:
        return False
    if listed.complete and (listed.declared or 0) > max(len(listed.names), sum(len(parts(name)) for name in listed.names)):
        return True
    own = set(listed.names)
    suffixed = any(profile_of(one)[1] is not None for one in own)  # then this one has lost its suffix
    if any(other not in own and (suffixed or profile_of(other)[0] != name) for other in known.longer(name)):
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
    listings = Counter([*known, *(name for listed in lists for name in listed.names)])
    all_names = Known(listings)
    for listed in lists:
        if listed.last in listed.names and _seems_cut(listed, listed.last, all_names, listings):
            listed.names.remove(listed.last)
            listed.doubtful.append(listed.last)
            listed.complete = False
    names = Known(known | {name for listed in lists for name in listed.names})
    for listed in lists:
        confirm(listed, names)
    return [Truncated(source=listed.raw.source, line=listed.raw.line, text=text) for listed in lists for text in listed.cut]
