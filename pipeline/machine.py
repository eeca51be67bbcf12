"""Facts of this machine and its GPUs, without importing torch."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

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


def gpus() -> list[dict[str, str]]:
    """Name, UUID, compute capability and driver of every NVIDIA GPU, through NVML; empty without one."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> dict[str, str]:
    import pynvml as n

    handle = n.nvmlDeviceGetHandleByIndex(index)
    major, minor = n.nvmlDeviceGetCudaComputeCapability(handle)
    text = lambda value: value.decode() if isinstance(value, bytes) else str(value)  # noqa: E731 (older NVML returns bytes)
    return {
        "name": text(n.nvmlDeviceGetName(handle)),
        "uuid": text(n.nvmlDeviceGetUUID(handle)),
        "compute_capability": f"{major}.{minor}",
        "driver": text(n.nvmlSystemGetDriverVersion()),
        "memory_bytes": str(n.nvmlDeviceGetMemoryInfo(handle).total),
    }
