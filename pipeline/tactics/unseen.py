"""Why a layer that no name of a report matches may be there all the same: what its sources are known to leave out."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

from pipeline.records.tactics import Build, TacticReport
from pipeline.tactics import overlap
from pipeline.tactics.settle import agrees


def glob(pattern: str) -> re.Pattern[str]:
    """A glob over layer names; `[` stands for itself, since names hold it."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")), re.DOTALL)


def _mixed(build: Build) -> str | None:
    return next((conflict.text for conflict in build.conflicts if conflict.code == overlap.CODE), None)


def _short_list(build: Build) -> str | None:
    """A standing list with fewer names than the number that stands before it."""
    for one in build.passes:
        for what, declared, names in (("eligible", one.eligible_declared, one.eligible), ("chosen", one.selected_declared, one.selected)):
            if one.superseded_by is None and (declared or 0) > len(names) and not agrees(declared, names):
                return f"the list of line {one.line} names {len(names)} of {declared} {what} layers"
    return None


def _ended_early(build: Build) -> str | None:
    how = {"cut": "the log breaks off before the build ended", "failed": "the build failed before all layers were named"}
    return None if _complete_elsewhere(build) else how.get(build.result or "")


def _names_none(build: Build) -> str | None:
    """No list, no table, no dump: the level hides them, sparsity was off, or the log was filtered."""
    return None if build.layers or build.passes else build.hint or "it names no layer"


def _complete_elsewhere(build: Build) -> bool:
    """Layer info and engine dump name all layers of the engine."""
    return any(layer.tactic is not None and layer.tactic.how in ("layer-info", "engine-dump") for layer in build.layers)


GAPS: tuple[Callable[[Build], str | None], ...] = (_mixed, _short_list, _ended_early, _names_none)
"""What a build may leave out, the surest first."""


def unseen(report: TacticReport, pattern: str) -> str | None:
    """Why it is not known whether the builds have a layer of this name; None where they would show it.

    Args:
        report: In which no layer matches.
        pattern: The glob.
    """
    names = Cut(pattern)
    for build in report.builds:
        for cut in build.truncated:
            if names.may_be(cut.text):
                line = f":{cut.line}" if cut.line else ""
                return f"build {build.id}: a name may be cut there ({report.sources[cut.source].path}{line}): {cut.text[:120]!r}"
    for build in report.builds:
        for gap in GAPS:
            if (why := gap(build)) is not None:
                return f"build {build.id}: {why}"
    for one in report.skipped:
        if not one.read:
            return f"{one.path} was not read: {one.why}"
    return None if report.builds else "a run that loads a plan tells of no layer: give the log of its build"


_ENDS = re.compile(r"\.{3}|, | \+ | \|\| |[(){}\u2026\ufffd\0]")
"""Where a cut text may have another name, or the cut itself."""


class Cut:
    """Whether a cut text may be of a name that a glob matches."""

    def __init__(self, pattern: str) -> None:
        self.beginnings = _beginnings(pattern)
        self.ends = _beginnings(pattern[::-1])

    def may_be(self, text: str) -> bool:
        """Whether a name that the text begins, ends or holds whole matches."""
        pieces = filter(None, map(str.strip, [text, *_ENDS.split(text)]))
        return any(self.beginnings.match(piece) or self.ends.match(piece[::-1]) for piece in pieces)


def _beginnings(pattern: str) -> re.Pattern[str]:
    """Matches what some text that the glob matches begins with: what a beginning of the glob matches whole."""
    return re.compile("|".join(glob(pattern[:end]).pattern for end in range(1, len(pattern) + 1)), re.DOTALL)
