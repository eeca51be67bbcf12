"""Facts of this machine and its GPUs, without importing torch."""

from __future__ import annotations

import os
import platform
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

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


def nvml_module() -> Any:
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
    nvml = nvml_module()
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
