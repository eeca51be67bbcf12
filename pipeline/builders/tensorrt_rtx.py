"""The tensorrt-rtx backend: plans ahead of time for named compute capabilities, on a machine without a GPU.

Its builder reports no sparse tactics and makes the same bytes with and without the sparsity flag (kernels are chosen
when the plan is loaded on an RTX GPU): rungs 4 to 6 are unknown here, and nothing can be timed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pipeline.builders.artifacts import check_plan
from pipeline.builders.base import ArmRequest
from pipeline.builders.options import TensorRTOptions, read_options
from pipeline.builders.tensorrt.engines import build_engine
from pipeline.builders.tensorrt.library import RTX, installed
from pipeline.errors import MissingPackageError, StageError
from pipeline.gpu_watch import GpuWatch
from pipeline.progress import Progress, silent
from pipeline.records.engines import Engine

if TYPE_CHECKING:
    import numpy as np


def backend(options: Mapping[str, object]) -> TensorRTRTX:
    """The backend with the recipe's `build` section."""
    return TensorRTRTX(read_options(options))


class TensorRTRTX:
    """Builds with TensorRT-RTX; cannot load, time or profile."""

    name = "tensorrt-rtx"
    sparse_kernels: bool | None = None
    flag_is_inert = False
    main_metric = "gpu_compute"

    def __init__(self, options: TensorRTOptions) -> None:
        self.options = options

    def describe(self) -> dict[str, str]:
        """Version and targets."""
        version = installed(RTX)
        if version is None:
            raise MissingPackageError("tensorrt_rtx", extra="rtx", purpose="the tensorrt-rtx backend")
        return {"tensorrt-rtx": version, "compute_capabilities": ", ".join(self.options.compute_capabilities) or "all"}

    def settings(self) -> dict[str, str]:
        """Nothing is measured."""
        return {}

    def watch(self) -> GpuWatch:
        """There is nothing to look at without a GPU: all of it is unobserved."""
        return GpuWatch()

    def build(self, request: ArmRequest, folder: Path, progress: Progress = silent) -> Engine:
        """Build one plan in a process of its own; errors as `build_engine`."""
        return build_engine(RTX, request, self.options, folder, progress)

    def load(self, engine: Engine, folder: Path) -> NoReturn:
        """Always an error: the plan's kernels are compiled when an RTX GPU loads it.

        Raises:
            StageError: says where the plan can be loaded.
        """
        raise _cannot("loads no plan", str(check_plan(engine, folder)))

    def profile(self, engine: Engine, folder: Path, feeds: Mapping[str, np.ndarray], passes: int) -> dict[str, list[float]]:
        """Empty: nothing runs here."""
        return {}

    def onnx_nodes(self, engine: Engine, folder: Path, layers: Sequence[str]) -> dict[str, list[str]]:
        """Empty: nothing is profiled here."""
        return {}


def _cannot(what: str, where: str) -> StageError:
    return StageError(
        f"the tensorrt-rtx backend {what}: it builds ahead of time, for a GPU that is elsewhere",
        where=where,
        hint="run the chain --until build, or measure with the tensorrt or trtexec backend on the GPU that will serve",
    )
