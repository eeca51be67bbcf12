"""What the building process is told, and what it answers: JSON between two processes."""

from __future__ import annotations

import msgspec

from pipeline.builders.options import TensorRTOptions


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One build. Paths are absolute."""

    library: str
    onnx: str
    stem: str
    folder: str
    sparse: bool
    precision: str
    profiles: list[dict[str, dict[str, list[int]]]] = []
    options: TensorRTOptions = TensorRTOptions()

    def path(self, suffix: str) -> str:
        """One of the build's files: `.plan`, `.log`, `.layers.json`, `.cache`."""
        return f"{self.folder}/{self.stem}{suffix}"


class PlanResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was built, or why not."""

    seconds: float = 0.0
    tensorrt: str = ""
    flags: list[str] = []
    """Names of the builder flags that were set."""
    network_flags: list[str] = []
    environment: dict[str, str] = {}
    cache_before: str = ""
    cache_after: str = ""
    notes: list[str] = []
    error: str | None = None
    where: str | None = None
    hint: str | None = None
    usage: bool = False
    """The error is one of input, not of the build."""


class PhaseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of one phase."""

    phase: str
    depth: int
    done: int
    total: int
