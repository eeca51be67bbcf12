"""What `build` leaves: one engine per arm and repeat, with its full log and what it was built from."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.io import Part, Record


class Engine(Part, frozen=True, kw_only=True):
    """One built engine."""

    arm: str
    """`sparse`, `twin`, `dense`, ..."""
    repeat: int = 1
    onnx_arm: str
    """The ONNX file it was built from."""
    plan: Artifact
    log: Artifact | None = None
    layer_info: Artifact | None = None
    timing_cache: Artifact | None = None
    options: dict[str, str | int | float | bool | list[str]] = {}
    """Meanings, not bit masks: `sparse_weights`, `precision`, `optimization_level`, ..."""
    seconds: float = 0.0
    built_with: dict[str, str] = {}
    """Library versions and GPU of the machine that built it: a plan is loaded only where they fit."""
    profiles: list[dict[str, dict[str, list[int]]]] = []
    """As in `Engines`: what shapes this plan takes."""
    inputs: dict[str, str] = {}
    """numpy's name of the type by input name."""
    dynamic_inputs: list[str] = []
    """Inputs with an axis that the file leaves open: only these may be given shapes."""
    notes: list[str] = []
    """What a reader of the figures should know: skipped tactics, a replay that differs."""
    simulated: str | None = None
    """Set when no TensorRT built it: says what did instead."""

    @property
    def name(self) -> str:
        """`sparse`, or `sparse#2` for a rebuilt arm."""
        return self.arm if self.repeat == 1 else f"{self.arm}#{self.repeat}"


class Engines(Record, frozen=True, kw_only=True, tag="sparsegate.engines/1"):
    """Output of `build`."""

    backend: str
    sparse_kernels: bool | None
    """False: the backend has none (rungs 4-6 not applicable); None: it does not report them."""
    engines: list[Engine]
    controls: list[list[str]] = []
    """Pairs of arms that run the same kernels on this backend: an A/A comparison, labelled so."""
    profiles: list[dict[str, dict[str, list[int]]]] = []
    """Per profile: input name -> min/opt/max -> shape."""
    environment: dict[str, str] = {}
    notes: list[str] = []
