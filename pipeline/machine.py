"""Facts of this machine and its GPUs, without importing torch."""

from __future__ import annotations

import os
import platform
import statistics
import threading
import time
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import msgspec

PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "nvidia-modelopt",
    "onnx",
    "onnxscript",
    "onnxruntime",
    "tensorrt",
    "tensorrt-rtx",
    "polygraphy",
    "pycuda",
    "numpy",
)


def cpu_name() -> str:
    """Name of the processor as the system states it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def package_versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Versions of the installed ones among `names`, from their metadata: imports none of them."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _nvml() -> Any:
    """The initialised NVML module; None without it or without a driver. Untyped: it ships no types."""
    try:
        nvml: Any = import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def gpus() -> list[dict[str, str]]:
    """Name, UUID, compute capability and driver of every NVIDIA GPU, through NVML; empty without one."""
    nvml = _nvml()
    if nvml is None:
        return []
    try:
        return [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
    finally:
        nvml.nvmlShutdown()


def _gpu(n: Any, index: int) -> dict[str, str]:
    handle = n.nvmlDeviceGetHandleByIndex(index)
    major, minor = n.nvmlDeviceGetCudaComputeCapability(handle)
    return {
        "name": _text(n.nvmlDeviceGetName(handle)),
        "uuid": _text(n.nvmlDeviceGetUUID(handle)),
        "compute_capability": f"{major}.{minor}",
        "driver": _text(n.nvmlSystemGetDriverVersion()),
        "memory_bytes": str(n.nvmlDeviceGetMemoryInfo(handle).total),
    }


def _text(value: str | bytes) -> str:
    """Older NVML packages return bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def nvml_number(device: int) -> int:
    """NVML's number of the GPU that CUDA calls `device`: CUDA_VISIBLE_DEVICES renumbers for CUDA alone (a list of numbers or UUIDs).

    Both count in the order of the bus where CUDA_DEVICE_ORDER=PCI_BUS_ID is set, which sparsegate sets before it starts CUDA.
    """
    visible = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    if device >= len(visible):
        return device
    entry = visible[device]
    if entry.isdigit():
        return int(entry)
    return next((index for index, gpu in enumerate(gpus()) if gpu["uuid"].startswith(entry)), device)


def gpu_facts(device: int) -> dict[str, str]:
    """Facts of CUDA's GPU `device` that decide what is built for it and how fast it runs, its name under `gpu`; empty without it."""
    found, number = gpus(), nvml_number(device)
    if number >= len(found):
        return {}
    return {"gpu" if key == "name" else key: value for key, value in found[number].items() if key != "memory_bytes"}


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What a GPU did while something ran on it."""

    facts: dict[str, str] = {}
    """Figures by name: `sm_clock_mhz` as `min/median/max`, ..."""
    warnings: list[str] = []
    """What makes times unfit to judge, or explains them."""
    unobserved: list[str] = []
    """What could not be seen from here: never taken for good."""
    clocks: list[tuple[int, int]] = []
    """(time.perf_counter_ns, SM clock in MHz) of every look, so that arms can be compared."""


THROTTLES = {
    "HwSlowdown": "hardware slowdown",
    "HwThermalSlowdown": "thermal slowdown (hardware)",
    "SwThermalSlowdown": "thermal slowdown",
    "HwPowerBrakeSlowdown": "power brake",
    "SwPowerCap": "power cap",
}
"""Name of an NVML throttle reason -> words. A power cap is normal at load: recorded, not a reason to distrust."""
FIGURES = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w")
SHARED = "other processes on the GPU"


class GpuWatch:
    """Looks at one GPU several times a second until it is stopped.

    Args:
        device: CUDA's number of the GPU.
        interval_s: Time between looks; one costs well under a millisecond of one core.
        nvml: The NVML module; the machine's own when absent.
    """

    def __init__(self, device: int = 0, *, interval_s: float = 0.1, nvml: Any = None) -> None:
        self._nvml = nvml if nvml is not None else _nvml()
        self._interval_s = interval_s
        self._figures: dict[str, list[float]] = {name: [] for name in FIGURES}
        self._clocks: list[tuple[int, int]] = []
        self._throttles: set[str] = set()
        self._others: set[int] = set()
        self._unobserved: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="gpu-watch", daemon=True)
        if self._nvml is None:
            self._unobserved = {*FIGURES, "throttling", SHARED}
            return
        self._handle = self._nvml.nvmlDeviceGetHandleByIndex(nvml_number(device))
        self._thread.start()

    def stop(self) -> Observation:
        """End the watch and say what was seen."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._nvml is not None and not any(self._figures.values()):
            self._look()  # stopped before its first look
        slow = [words for name, words in THROTTLES.items() if name in self._throttles]
        facts = {name: f"{min(values):g}/{statistics.median(values):g}/{max(values):g}" for name, values in self._figures.items() if values}
        if slow:
            facts["throttling"] = ", ".join(slow)
        warnings = [f"the GPU was slowed down: {words}" for words in slow if words != THROTTLES["SwPowerCap"]]
        if self._others:
            warnings.append(f"other processes used the GPU: {', '.join(map(str, sorted(self._others)))}")
        return Observation(facts=facts, warnings=warnings, unobserved=sorted(self._unobserved), clocks=self._clocks)

    def _loop(self) -> None:
        while not self._ended.is_set():
            self._look()
            self._ended.wait(self._interval_s)

    def _look(self) -> None:
        n, handle = self._nvml, self._handle
        clock = self._ask("sm_clock_mhz", lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM))
        if clock is not None:
            self._clocks.append((time.perf_counter_ns(), int(clock)))
        self._ask("memory_clock_mhz", lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_MEM))
        self._ask("temperature_c", lambda: n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU))
        self._ask("power_w", lambda: n.nvmlDeviceGetPowerUsage(handle) / 1000)
        reasons = self._ask("throttling", lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        if reasons is not None:
            self._throttles |= {name for name in THROTTLES if reasons & throttle_bit(n, name)}
        running = self._ask(SHARED, lambda: [process.pid for process in n.nvmlDeviceGetComputeRunningProcesses(handle)])
        if running is not None:
            self._see_processes(running)

    def _see_processes(self, running: list[int]) -> None:
        """In a container NVML lists nothing, or numbers of another namespace: then this process is not among them."""
        if os.getpid() in running:
            self._others |= set(running) - {os.getpid()}
            self._unobserved.discard(SHARED)
        elif not self._others:
            self._unobserved.add(SHARED)

    def _ask(self, name: str, question: Any) -> Any:
        try:
            answer = question()
        except self._nvml.NVMLError:
            self._unobserved.add(name)
            return None
        if name in self._figures:
            self._figures[name].append(float(answer))
        return answer


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
