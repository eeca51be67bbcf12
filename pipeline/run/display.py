"""Showing a run as it goes: bars on a terminal, one line per stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from pipeline.progress import Progress
    from pipeline.records.run import StageStatus

EVERY_SECONDS = 5.0
"""Plain output repeats a task's progress at most this often."""


class PlainDisplay:
    """Lines for pipes and CI logs."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last: dict[str, float] = {}

    def progress(self, task: str, done: float, total: float | None = None, text: str = "") -> None:
        """Write a line when a task is new, ends, or has been silent for a while."""
        now = time.monotonic()
        if task in self._last and now - self._last[task] < EVERY_SECONDS and (total is None or done < total):
            return
        self._last[task] = now
        share = f" {done:g}/{total:g}" if total else ""
        self._out.write(f"  {task}{share}{'  ' + text if text else ''}\n")
        self._out.flush()

    def stage(self, status: StageStatus) -> None:
        """One line per finished stage."""
        self._out.write(f"{line(status)}\n")
        self._out.flush()


class BarDisplay:
    """One bar per task; a finished stage becomes a line above the bars."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def progress(self, task: str, done: float, total: float | None = None, text: str = "") -> None:
        """Move the task's bar, making it on first use."""
        if task not in self._tasks:
            self._tasks[task] = self._bars.add_task(task, total=total, note="")
        self._bars.update(self._tasks[task], completed=done, total=total, note=text)

    def stage(self, status: StageStatus) -> None:
        """Print the stage's line and clear its bars."""
        for task in self._tasks.values():
            self._bars.remove_task(task)
        self._tasks.clear()
        self._bars.console.print(line(status), markup=False, highlight=False)


@contextmanager
def display(quiet: bool) -> Iterator[tuple[Progress, Callable[[StageStatus], None]]]:
    """A progress callback and a stage callback for standard error."""
    if quiet:
        yield (lambda *_, **__: None), (lambda _: None)
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            shown = BarDisplay(bars)
            yield shown.progress, shown.stage
    else:
        plain = PlainDisplay(sys.stderr)
        yield plain.progress, plain.stage


def line(status: StageStatus) -> str:
    """`train    ok      23.1 s  engines folder`."""
    from datetime import datetime

    seconds = ""
    if status.started and status.ended:
        seconds = f"{(datetime.fromisoformat(status.ended) - datetime.fromisoformat(status.started)).total_seconds():.1f} s"
    return f"{status.stage:<8} {status.status:<7} {seconds:>8}  {status.folder or ''}".rstrip()
