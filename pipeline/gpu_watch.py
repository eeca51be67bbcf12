"""What a GPU does while something runs on it, through NVML: clocks, heat, power, throttling, other processes, energy."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from pipeline.machine import nvml_module, nvml_number


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a device: what it told."""

    at_ns: int
    """time.perf_counter_ns, so that looks can be held against the blocks of a measurement."""
    figures: dict[str, float] = {}
    """By name among `FIGURES`."""
    slowdown: list[str] | None = None
    """Throttle reasons in force, by NVML's names; None: not told."""
    others: int | None = None
    """Processes of others; None: not told."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What a device did while something ran on it."""

    facts: dict[str, str] = {}
    """Figures by name: `sm_clock_mhz` as `min/median/max`, ..."""
    warnings: list[str] = []
    """What makes times unfit to judge, or explains them."""
    unobserved: list[str] = []
    """What could not be seen from here: never taken for good."""
    looks: list[Look] = []
    """In the order of time, so that arms can be compared."""


THROTTLES = {
    "HwSlowdown": "hardware slowdown",
    "HwThermalSlowdown": "thermal slowdown (hardware)",
    "SwThermalSlowdown": "thermal slowdown",
    "HwPowerBrakeSlowdown": "power brake",
    "SwPowerCap": "power cap",
}
"""Name of an NVML throttle reason -> words. A power cap is normal at load: recorded, not a reason to distrust."""
FIGURES = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w")
THROTTLING = "throttling"
SHARED = "other processes on the GPU"


def observation(looks: Sequence[Look], *, pids: Iterable[int] = (), more: Sequence[str] = ()) -> Observation:
    """Join looks into what is said of the whole time.

    Args:
        looks: In the order of time.
        pids: Processes of others that were seen, where they have numbers.
        more: Further warnings.
    """
    figures = {name: [look.figures[name] for look in looks if name in look.figures] for name in FIGURES}
    facts = {name: f"{min(values):g}/{statistics.median(values):g}/{max(values):g}" for name, values in figures.items() if values}
    names = {name for look in looks for name in look.slowdown or ()}
    slow = [words for name, words in THROTTLES.items() if name in names]
    if slow:
        facts[THROTTLING] = ", ".join(slow)
    unobserved = [name for name, values in figures.items() if not values]
    unobserved += [THROTTLING] if all(look.slowdown is None for look in looks) else []
    unobserved += [SHARED] if all(look.others is None for look in looks) else []
    warnings = [f"the GPU was slowed down: {words}" for words in slow if words != THROTTLES["SwPowerCap"]]
    if any(look.others for look in looks):
        warnings.append(f"other processes used the GPU: {', '.join(map(str, sorted(pids))) or 'some'}")
    return Observation(facts=facts, warnings=[*warnings, *more], unobserved=sorted(unobserved), looks=list(looks))


class GpuWatch:
    """Looks at one GPU several times a second until it is stopped.

    Args:
        device: CUDA's number of the GPU.
        interval_s: Time between looks; one costs well under a millisecond of one core.
        nvml: The NVML module; the machine's own when absent.
    """

    energy_source = "the GPU's own energy counter (NVML): the whole GPU, with what it draws when idle"

    def __init__(self, device: int = 0, *, interval_s: float = 0.1, nvml: Any = None) -> None:
        self._nvml = nvml if nvml is not None else nvml_module()
        self._interval_s = interval_s
        self._looks: list[Look] = []
        self._pids: set[int] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="gpu-watch", daemon=True)
        if self._nvml is None:
            return
        self._handle = self._nvml.nvmlDeviceGetHandleByIndex(nvml_number(device))
        self._thread.start()

    def stop(self) -> Observation:
        """End the watch and say what was seen."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._nvml is not None and not self._looks:
            self._look()  # stopped before its first look
        return observation(self._looks, pids=self._pids)

    def energy_mj(self) -> float | None:
        """Energy that the GPU has used since some moment in the past, mJ; None where it does not count it (before Volta, many boards)."""
        if self._nvml is None:
            return None
        found = self._ask(lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        return None if found is None else float(found)

    def _loop(self) -> None:
        while not self._ended.is_set():
            self._look()
            self._ended.wait(self._interval_s)

    def _look(self) -> None:
        n, handle = self._nvml, self._handle
        at_ns = time.perf_counter_ns()
        asked = {
            "sm_clock_mhz": self._ask(lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM)),
            "memory_clock_mhz": self._ask(lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_MEM)),
            "temperature_c": self._ask(lambda: n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU)),
            "power_w": self._ask(lambda: n.nvmlDeviceGetPowerUsage(handle) / 1000),
        }
        reasons = self._ask(lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        running = self._ask(lambda: [process.pid for process in n.nvmlDeviceGetComputeRunningProcesses(handle)])
        self._looks.append(
            Look(
                at_ns=at_ns,
                figures={name: float(value) for name, value in asked.items() if value is not None},
                slowdown=None if reasons is None else [name for name in THROTTLES if reasons & throttle_bit(n, name)],
                others=None if running is None else self._others(running),
            )
        )

    def _others(self, running: list[int]) -> int | None:
        """In a container NVML lists nothing, or numbers of another namespace: then this process is not among them."""
        if os.getpid() not in running:
            return None
        others = set(running) - {os.getpid()}
        self._pids |= others
        return len(others)

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def throttle_bit(nvml: Any, name: str) -> int:
    """The bit of a throttle reason; newer NVML names some of them after clock events."""
    for prefix in ("nvmlClocksThrottleReason", "nvmlClocksEventReason"):
        bit = getattr(nvml, prefix + name, None)
        if bit is not None:
            return int(bit)
    return 0


def clock_warnings(device: int = 0) -> list[str]:
    """What one look at the GPU says against tuning or timing on it now; empty without NVML."""
    return GpuWatch(device).stop().warnings
