"""The tensorrt backend: builds in a child process, runs and times in this one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline import machine
from pipeline.builders import versions
from pipeline.builders.artifacts import check_plan
from pipeline.builders.base import ArmRequest
from pipeline.builders.layer_nodes import onnx_nodes
from pipeline.builders.options import TensorRTOptions, read_options, timing_settings
from pipeline.builders.tensorrt import cache
from pipeline.builders.tensorrt.engines import build_engine
from pipeline.builders.tensorrt.library import TENSORRT, installed, load
from pipeline.builders.tensorrt.logger import LogFile, process_logger
from pipeline.builders.tensorrt.session import TrtSession
from pipeline.errors import InputError, MissingPackageError, StageError
from pipeline.gpu_watch import GpuWatch, clock_warnings
from pipeline.progress import Progress, silent
from pipeline.records.engines import Engine

if TYPE_CHECKING:
    import numpy as np


def backend(options: Mapping[str, object]) -> TensorRT:
    """The backend with the recipe's `build` section."""
    return TensorRT(read_options(options))


class TensorRT:
    """TensorRT 8.6, 10 or 11 on a GPU of this machine."""

    name = "tensorrt"
    sparse_kernels: bool | None = True
    flag_is_inert = False
    main_metric = "gpu_compute"

    def __init__(self, options: TensorRTOptions) -> None:
        self.options = options

    def describe(self) -> dict[str, str]:
        """Version of TensorRT, and the GPU with its driver.

        Raises:
            MissingPackageError: no TensorRT.
            InputError: no such GPU.
        """
        version = installed(TENSORRT)
        if version is None:
            raise MissingPackageError("tensorrt", extra="tensorrt", purpose="the tensorrt backend")
        gpu = machine.gpu_facts(self.options.device)
        if not gpu:
            raise InputError(f"no GPU {self.options.device}", where="build.device", hint="sparsegate doctor says what NVML finds")
        return {"tensorrt": version, **gpu, **cache.recorded_digest(self.options)}

    def settings(self) -> dict[str, str]:
        """What two measurements must share to be compared."""
        return timing_settings(self.options)

    def build(self, request: ArmRequest, folder: Path, progress: Progress = silent) -> Engine:
        """Build one engine in a process of its own; errors as `build_engine`."""
        versions.check(self.options, request.precision, versions.parse_version(self.describe()["tensorrt"]))
        warnings = [f"before tuning: {text}" for text in clock_warnings(self.options.device)]
        engine = build_engine(TENSORRT, request, self.options, folder, progress)
        return msgspec.structs.replace(engine, notes=[*warnings, *engine.notes])

    def watch(self) -> GpuWatch:
        """Clocks, temperature, power, throttling and other processes, until it is stopped."""
        return GpuWatch(self.options.device)

    def load(self, engine: Engine, folder: Path) -> TrtSession:
        """Load a plan, after its digest, TensorRT's version and the GPU were compared with those of its build.

        Raises:
            TamperedError: other bytes.
            InputError: another TensorRT or GPU.
            StageError: TensorRT refuses the plan.
        """
        plan = check_plan(engine, folder)
        check_fits(engine, self.describe())
        trt = load(TENSORRT)
        from pipeline.builders.tensorrt.cuda import Cuda

        cuda = Cuda(self.options.device)
        try:
            return TrtSession(trt, _deserialized(trt, plan), cuda, self.options, engine.profiles)
        except BaseException:
            cuda.close()
            raise

    def profile(self, engine: Engine, folder: Path, feeds: Mapping[str, np.ndarray], passes: int) -> dict[str, list[float]]:
        """Time every engine layer with TensorRT's profiler: layer -> one mean in ms per pass."""
        session = self.load(engine, folder)
        try:
            return session.profile(feeds, passes)
        finally:
            session.close()

    def onnx_nodes(self, engine: Engine, folder: Path, layers: Sequence[str]) -> dict[str, list[str]]:
        """As the layer information says."""
        return onnx_nodes(engine, folder, layers)


FITS = {"tensorrt": "TensorRT", "gpu": "GPU", "jetson": "board", "compute_capability": "compute capability"}
"""What of `built_with` must be the same where a plan is loaded."""


def check_fits(engine: Engine, here: Mapping[str, str]) -> None:
    """Refuse a plan of another TensorRT or GPU: it may load, and then its figures mean nothing.

    Raises:
        InputError: what differs.
    """
    built = engine.built_with
    differing = [
        f"{words} {built[key]}, here {here.get(key)}"
        for key, words in FITS.items()
        if key in built and _differ(built[key], here.get(key, ""))
    ]
    if differing:
        raise InputError(f"the plan was built with {'; '.join(differing)}", where=engine.plan.path, hint="build it again on this machine")


def _differ(built: str, here: str) -> bool:
    """Versions differ by their numbers: packages of one TensorRT carry suffixes such as `.post1`."""
    numbers = [text.partition(".post")[0] for text in (built, here)]
    return numbers[0] != numbers[1]


def _deserialized(trt: Any, plan: Path) -> Any:
    log = LogFile(Path(os.devnull), verbose=False)  # kept for its errors alone
    try:
        engine = trt.Runtime(process_logger(trt, log)).deserialize_cuda_engine(plan.read_bytes())
        if engine is None:
            raise StageError("TensorRT does not load the plan: " + ("; ".join(log.errors[-2:]) or "it gives no reason"), where=str(plan))
    finally:
        process_logger(trt)
        log.close()
    return engine
