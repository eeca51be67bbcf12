"""TensorRT's progress as events: one per phase step, throttled, and the way to stop a build cleanly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Report = Callable[[str, int, int, int], None]
"""(phase, depth, steps done, steps in all)"""
LEAST_S = 0.05
"""Shortest time between two reports of one phase: a build has thousands of steps."""


def make_monitor(trt: Any, report: Report, stopped: Callable[[], bool]) -> Any:
    """An IProgressMonitor (TensorRT 10.0 and later) that reports phases and ends the build once `stopped()` is true."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]  # the base is known only at run time
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self._open: dict[str, tuple[int, int, float]] = {}  # phase -> depth, steps, last report

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            depth = self._open[parent_phase][0] + 1 if parent_phase in self._open else 0
            self._open[phase_name] = (depth, num_steps, time.monotonic())
            report(phase_name, depth, 0, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            depth, steps, last = self._open.get(phase_name, (0, step + 1, 0.0))
            now = time.monotonic()
            if now - last >= LEAST_S:
                self._open[phase_name] = (depth, steps, now)
                report(phase_name, depth, step + 1, steps)
            return not stopped()

        def phase_finish(self, phase_name: str) -> None:
            depth, steps, _ = self._open.pop(phase_name, (0, 1, 0.0))
            report(phase_name, depth, steps, steps)

    return Monitor()
