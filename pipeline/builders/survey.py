"""What each backend needs, and whether this machine has it: nothing is imported, so a broken package cannot break the survey."""

from __future__ import annotations

import ctypes.util
import platform
import shutil
from collections.abc import Callable, Sequence
from importlib import metadata, util
from pathlib import Path

import msgspec

from pipeline import machine
from pipeline.builders.options import TensorRTOptions
from pipeline.builders.tensorrt.library import RTX, TENSORRT, installed
from pipeline.builders.trtexec.facts import machine_facts
from pipeline.builders.trtexec.process import ask_version
from pipeline.builders.trtexec.target import Target
from pipeline.records.survey import BackendSurvey, Need, Survey

TRTEXEC_PLACES = ("/usr/src/tensorrt/bin/trtexec", "/usr/local/tensorrt/bin/trtexec", "/opt/tensorrt/bin/trtexec")
"""Where NVIDIA's packages and containers put it, off the PATH."""


class Check(msgspec.Struct, frozen=True):
    """One need: what it is called, how it is looked for, and what brings it."""

    what: str
    look: Callable[[], str | None]
    install: str


def _package(*distributions: str) -> Callable[[], str | None]:
    def look() -> str | None:
        for name in distributions:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return None

    return look


def _gpu() -> str | None:
    return ", ".join(f"{gpu['name']} ({gpu['compute_capability']})" for gpu in machine.gpus()) or None


def _driver() -> str | None:
    return next((gpu["driver"] for gpu in machine.gpus()), None) or ctypes.util.find_library("cuda")


def _inference_library() -> str | None:
    """libnvinfer: from the system, or from the wheel that holds it."""
    found = ctypes.util.find_library("nvinfer")
    if found:
        return found
    spec = util.find_spec("tensorrt_libs")
    places = spec.submodule_search_locations if spec else None
    return next((file.name for place in places or () for file in Path(place).glob("libnvinfer.so*")), None)


def _trtexec() -> str | None:
    return shutil.which("trtexec") or next((place for place in TRTEXEC_PLACES if Path(place).is_file()), None)


def _x86_linux() -> str | None:
    return f"{platform.machine()} {platform.system()}" if platform.machine() in ("x86_64", "AMD64") else None


NEEDS: dict[str, tuple[Check, ...]] = {
    "onnxruntime": (
        Check("onnxruntime", _package("onnxruntime"), "pip install sparsegate"),
        Check("onnx", _package("onnx"), "pip install sparsegate"),
    ),
    "tensorrt": (
        Check("an NVIDIA GPU", _gpu, "sparsegate runs trtexec elsewhere too: see backend trtexec"),
        Check("NVIDIA's driver (libcuda)", _driver, "apt-get install nvidia-driver-580 (or run a container with --gpus all)"),
        Check(
            "tensorrt",
            lambda: installed(TENSORRT),
            "pip install tensorrt-cu13 (CUDA 12: tensorrt-cu12; Jetson: apt-get install python3-libnvinfer)",
        ),
        Check("libnvinfer", _inference_library, "pip install tensorrt-cu13 (its wheel of libraries), or apt-get install libnvinfer-bin"),
        Check("polygraphy", _package("polygraphy"), "pip install 'sparsegate[tensorrt]'"),
        Check("pycuda", _package("pycuda"), "pip install 'sparsegate[tensorrt]' (it is compiled: needs nvcc and the CUDA headers)"),
        Check("cuda-python", _package("cuda-python", "cuda-bindings"), "pip install 'sparsegate[tensorrt]'"),
        Check("nvidia-ml-py", _package("nvidia-ml-py"), "pip install 'sparsegate[tensorrt]'"),
    ),
    "trtexec": (Check("trtexec", _trtexec, "apt-get install libnvinfer-bin, or build.command: [ssh, HOST] to run it elsewhere"),),
    "tensorrt-rtx": (
        Check("x86-64", _x86_linux, "TensorRT-RTX is built for x86-64 alone"),
        Check("tensorrt-rtx", lambda: installed(RTX), "pip install 'sparsegate[rtx]'"),
        Check("polygraphy", _package("polygraphy"), "pip install 'sparsegate[rtx]'"),
    ),
}
COULD: dict[str, tuple[str, str]] = {
    # backend -> (what it can do when all is there, what is lost when something is missing)
    "onnxruntime": ("build, time, profile and evaluate on the CPU; it has no sparse kernels", "nothing"),
    "tensorrt": ("build, read tactics, time with CUDA events, profile and evaluate on this GPU", "nothing until what is missing is there"),
    "trtexec": ("build, read tactics, time and profile with trtexec here", "nothing here; a target is reached with build.command"),
    "tensorrt-rtx": ("parse and build plans for RTX GPUs; it cannot time, and says nothing of sparse tactics", "nothing"),
}


def survey() -> Survey:
    """Look at this machine."""
    return Survey(
        python=platform.python_version(),
        os=platform.platform(),
        cpu=machine.cpu_name(),
        cores=machine.cores(),
        gpus=machine.gpus(),
        packages=machine.package_versions(),
        backends=[_backend(name, checks) for name, checks in NEEDS.items()],
    )


def _backend(name: str, checks: Sequence[Check]) -> BackendSurvey:
    needs = [Need(what=check.what, found=(found := check.look()), install="" if found else check.install) for check in checks]
    ready = all(need.found for need in needs)
    return BackendSurvey(name=name, ready=ready, could=COULD[name][0 if ready else 1], needs=needs)


def target_facts(command: Sequence[str], trtexec: str) -> dict[str, str]:
    """Facts of the machine that `command` reaches, and its trtexec's version.

    Raises:
        InputError: the command or trtexec cannot be started.
        StageError: the machine does not answer.
    """
    options = TensorRTOptions(command=list(command), trtexec=trtexec)
    target = Target(options.command, options.remote_folder)
    version, simulated = ask_version(target, trtexec)
    facts = {"target": target.name, "tensorrt": version, **machine_facts(target, options.device)}
    return {**facts, "simulated": simulated} if simulated else facts
