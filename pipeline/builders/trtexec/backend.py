"""The trtexec backend: builds, times and profiles with trtexec, here or behind a prefix."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.builders.artifacts import check_plan
from pipeline.builders.base import ArmRequest
from pipeline.builders.layer_nodes import onnx_nodes
from pipeline.builders.options import TensorRTOptions, read_options, timing_settings
from pipeline.builders.tensorrt import cache
from pipeline.builders.tensorrt.backend import check_fits
from pipeline.builders.trtexec.build import build_engine
from pipeline.builders.trtexec.facts import RemoteWatch, clock_warnings, machine_facts
from pipeline.builders.trtexec.process import ask_version
from pipeline.builders.trtexec.session import TrtexecSession
from pipeline.builders.trtexec.target import Target
from pipeline.builders.versions import parse_version
from pipeline.progress import Progress, silent
from pipeline.records.engines import Engine

if TYPE_CHECKING:
    import numpy as np


def backend(options: Mapping[str, object]) -> Trtexec:
    """The backend with the recipe's `build` section."""
    return Trtexec(read_options(options))


class Trtexec:
    """trtexec of TensorRT 8.6, 10 or 11, on any machine that a command reaches."""

    name = "trtexec"
    sparse_kernels: bool | None = True
    flag_is_inert = False
    main_metric = "gpu_compute"

    def __init__(self, options: TensorRTOptions) -> None:
        self.options = options
        self.target = Target(options.command, options.remote_folder)
        self._doubts: list[str] = []

    @cached_property
    def _described(self) -> dict[str, str]:
        version, simulated = ask_version(self.target, self.options.trtexec)
        facts = {"tensorrt": version, "target": self.target.name, **machine_facts(self.target, self.options.device)}
        return {**facts, "simulated": simulated} if simulated else facts

    def describe(self) -> dict[str, str]:
        """TensorRT's version from trtexec's banner, and facts of the machine that runs it; asked once.

        Raises:
            InputError: no trtexec there.
            StageError: the target does not answer.
        """
        return {**self._described, **cache.recorded_digest(self.options)}

    def settings(self) -> dict[str, str]:
        """What two measurements must share to be compared; defaults of versions differ, so each is said."""
        return timing_settings(self.options)

    def watch(self) -> RemoteWatch:
        """Clocks, temperature, power and throttling on the target; and what trtexec says against its own times."""
        return RemoteWatch(
            self.target, self.options.device, jetson="jetson" in self._described, tag=uuid.uuid4().hex[:8], doubts=self._doubts
        )

    def build(self, request: ArmRequest, folder: Path, progress: Progress = silent) -> Engine:
        """Build one engine, after a look at the target's clocks; errors as `build.build_engine`."""
        warnings = [f"before tuning: {text}" for text in clock_warnings(self.target, self.options.device, self._described)]
        engine = build_engine(self.target, self.options, request, folder, self.describe(), progress)
        return msgspec.structs.replace(engine, notes=[*warnings, *engine.notes])

    def load(self, engine: Engine, folder: Path) -> TrtexecSession:
        """Bring a plan to the target, after its digest, TensorRT's version and the GPU were compared with those of its build."""
        plan = check_plan(engine, folder)
        check_fits(engine, self.describe())
        return TrtexecSession(self.target, self.options, parse_version(self._described["tensorrt"]), engine, plan, self._doubts)

    def profile(self, engine: Engine, folder: Path, feeds: Mapping[str, np.ndarray], passes: int) -> dict[str, list[float]]:
        """Time every engine layer, a process per pass: layer -> one mean in ms per pass."""
        session = self.load(engine, folder)
        try:
            return session.profile(feeds, passes)
        finally:
            session.close()

    def onnx_nodes(self, engine: Engine, folder: Path, layers: Sequence[str]) -> dict[str, list[str]]:
        """As the layer information says."""
        return onnx_nodes(engine, folder, layers)
