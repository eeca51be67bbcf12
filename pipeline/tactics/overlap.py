"""Runs of trtexec that write into one file at once: what no line can tell apart is told of none of them."""

from __future__ import annotations

import re

from pipeline.records.tactics import Conflict
from pipeline.tactics.builds import BuildLog, Verdict

CODE = "runs-mixed"
_BUILT = re.compile(r"Engine built in ")
"""What a run of trtexec prints once."""


class Runs:
    """The runs of one stream that print a banner, and which of them are known to overlap.

    A run without a verdict before the next banner has crashed, or still writes. That it still writes is shown by its own
    verdict, which repeats its command, or by messages that one run prints once and that come again.

    Args:
        builds: Builds of the whole file, in order; those of the stream that overlap are changed in place.
    """

    def __init__(self, builds: list[BuildLog]) -> None:
        self.builds = builds
        self._open: list[BuildLog] = []
        self._last: BuildLog | None = None
        self._built = 0
        self._twice = False

    def banner(self, build: BuildLog, line: int) -> None:
        """A run begins."""
        self._settle(line - 1)
        self._open.append(build)
        self._last = build
        self._built = 0

    def closing(self, text: str) -> None:
        """A message that ends a build."""
        self._built += _BUILT.match(text) is not None
        self._twice = self._twice or (self._built > 1 and len(self._open) > 1)

    def listed(self, build: BuildLog) -> None:
        """A list of the summary: within one run those of eligible and of chosen layers take turns."""
        kinds = [raw.kind for raw in build.lists[-2:]]
        self._twice = self._twice or (len(kinds) > 1 and kinds[0] == kinds[1] is not None and len(self._open) > 1)

    def verdict(self, at_hand: BuildLog, command: str, result: Verdict, line: int) -> BuildLog:
        """Give a verdict to its run; returns the build to which the lines behind it belong.

        Args:
            at_hand: The build that takes the messages.
            command: The command that the verdict repeats.
            result: What it says.
            line: Where it stands.
        """
        ended = next((run for run in reversed(self._open) if run.command == command), None)
        self._open = [run for run in self._open if run is not ended]
        if ended is not None:
            ended.verdict = result
        if ended is None or ended is self._last:
            at_hand.result = result
            at_hand.close()
            return at_hand
        mixed = self._part(ended, line)
        alike = [run for run in mixed if run.command == command and run.verdict]
        for run in alike:  # where they differ, it is not known which is whose
            run.result = result if all(other.verdict == result for other in alike) else None
        return next((run for run in reversed(mixed) if _among(run, self._open)), mixed[-1])

    def finish(self) -> None:
        """The end of the file."""
        self._settle(None)

    def _settle(self, line: int | None) -> None:
        """Part the runs that are known to overlap, though not by a verdict."""
        others = [run for run in self._open if run is not self._last]
        if self._twice and others:
            self._part(others[-1], line)
        self._twice = False

    def _part(self, first: BuildLog, line: int | None) -> list[BuildLog]:
        """Forget what was read up to `line` of the runs since `first`, and return them; an engine that was built before is its own."""
        own = [build for build in self.builds if build.process == first.process]
        since = own[next(i for i, build in enumerate(own) if build is first) :]
        mixed = [build for build in since if build.command is not None]
        begun = ", ".join(str(run.command_line) for run in mixed)
        text = (
            f"lines {mixed[1].command_line} to {line or 'the end'}: the runs that began at lines {begun} "
            "wrote here at once, and no line tells of which of them it is"
        )
        for run in mixed:
            run.result = run.verdict
            if run is not first or not run.closed:
                run.forget()
                run.conflicts = [Conflict(code=CODE, layers=[], text=text)]
        self.builds[:] = [build for build in self.builds if build.command is not None or not _among(build, since)]
        self._twice = False
        return mixed


def _among(build: BuildLog, builds: list[BuildLog]) -> bool:
    return any(other is build for other in builds)
