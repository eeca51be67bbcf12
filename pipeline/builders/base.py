"""The protocol that every backend follows: build, load, time, profile, describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from pipeline.gpu_watch import Observation
from pipeline.progress import Progress, silent
from pipeline.records.engines import Engine

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]
    Samples = Mapping[str, np.ndarray]

Options = dict[str, "str | int | float | bool | list[str]"]


class ArmRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One engine to build."""

    arm: str
    repeat: int
    onnx: Path
    onnx_arm: str
    sparse_weights: bool
    precision: str
    """`fp32`, `fp16`, `bf16`: the type that the file was exported with."""
    profiles: list[dict[str, dict[str, list[int]]]]
    """Per optimization profile: input name -> `min` | `opt` | `max` -> shape."""
    options: Options = {}
    """The recipe's `build` section, less what stands above."""


class Sampler(Protocol):
    """Times one engine at one fixed set of real inputs that are already where the engine reads them."""

    def block(self, count: int) -> Samples:
        """Run `count` inferences back to back; per metric (`host_latency`, `gpu_compute`, ...) one array [count] of ms."""
        ...


class Session(Protocol):
    """An engine loaded and ready to run; has its own buffers. Close it when done."""

    def run(self, feeds: Arrays) -> dict[str, np.ndarray]:
        """Run once; outputs by name."""
        ...

    def sampler(self, feeds: Arrays) -> Sampler:
        """Bind `feeds` and time them."""
        ...

    def close(self) -> None:
        """Free what the session holds."""
        ...


class Watch(Protocol):
    """Looks at a machine until it is stopped."""

    energy_source: str
    """What counts energy there."""

    def energy_mj(self) -> float | None:
        """Energy used since some moment in the past, mJ; None where nothing counts it."""
        ...

    def stop(self) -> Observation:
        """What was seen."""
        ...


class Backend(Protocol):
    """One way to build and run engines."""

    name: str
    sparse_kernels: bool | None
    """False: has none; None: does not report them; True: TensorRT's own."""
    flag_is_inert: bool
    """True: the sparsity flag changes nothing here, so `sparse` and `twin` are a control (A/A)."""
    main_metric: str
    """The metric that a latency rule means when it names none."""

    def describe(self) -> dict[str, str]:
        """Versions and machine facts that decide what it builds: they enter the build's key."""
        ...

    def settings(self) -> dict[str, str]:
        """What two measurements must share to be compared: transfers, graph mode, threads."""
        ...

    def watch(self) -> Watch:
        """Start to look at the machine that runs the engines: clocks, power, temperature, other work."""
        ...

    def build(self, request: ArmRequest, folder: Path, progress: Progress = silent) -> Engine:
        """Build one engine into `folder` (its artifacts are named relative to it), with its full log."""
        ...

    def load(self, engine: Engine, folder: Path) -> Session:
        """Load a built engine after checking its digest."""
        ...

    def profile(self, engine: Engine, folder: Path, feeds: Arrays, passes: int) -> dict[str, list[float]]:
        """Time every engine layer in a pass apart: layer name -> one mean in ms per pass. Empty where it cannot."""
        ...

    def onnx_nodes(self, engine: Engine, folder: Path, layers: Sequence[str]) -> dict[str, list[str]]:
        """Names of the ONNX nodes by profiled layer, where the backend itself can tell; layer info tells the rest."""
        ...
