"""The recipe's `build` section as the TensorRT backends read it: meanings, never flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from pipeline.errors import InputError

Count = Annotated[int, msgspec.Meta(ge=1)]


class TensorRTOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How TensorRT builds and times, for every arm alike.

    What the API and trtexec default differently is set in both: TF32 (Polygraphy clears it, trtexec leaves it on) and
    the timings that a tactic's time is the mean of (the API takes 1, trtexec 8).
    """

    preset: Literal["release", "diagnose"] = "release"
    precision: Literal["file", "fp16", "bf16"] = "file"
    """`file`: the exported type; else what a weakly typed network may use besides."""
    typing: Literal["auto", "weak", "strong"] = "auto"
    """`auto`: weak before TensorRT 11 (flags allow the types), strong from 11 (the file's types are obeyed)."""
    tf32: bool = True
    strict_nans: bool = False
    optimization_level: Annotated[int, msgspec.Meta(ge=0, le=5)] = 3
    avg_timing: Count = 8
    workspace_mib: Count | None = None
    max_tactics: Count | None = None
    tactic_sources: list[str] | None = None
    preview_features: list[str] | None = None
    verbose: bool = True
    timing_cache: Literal["off", "record", "replay"] = "record"
    timing_cache_from: str | None = None
    """Folder of an earlier build: its `<engine>.cache` is where this one starts, or what it replays."""
    timeout_s: Count = 3600
    device: Annotated[int, msgspec.Meta(ge=0)] = 0
    transfers: bool = False
    cuda_graph: bool = True
    spin_wait: bool = True
    compute_capabilities: list[str] = []
    command: list[str] = []
    trtexec: str = "trtexec"
    remote_folder: str = "/tmp/sparsegate"
    target_python: str | None = None
    """trtexec: Python on the target that has tensorrt; None: one trtexec process per batch."""

    def allowed(self, exported: str) -> str:
        """The type that the builder's flags allow, for a file exported as `exported`."""
        return exported if self.precision == "file" else self.precision

    @property
    def averaged(self) -> int:
        """Timings per tactic: `diagnose` averages more, so that a dense tactic that won did not win by noise."""
        return max(self.avg_timing, DIAGNOSE_AVERAGES) if self.preset == "diagnose" else self.avg_timing

    @property
    def cache_mode(self) -> str:
        """`diagnose` has no timing cache: every layer's tactics are timed and logged."""
        return "off" if self.preset == "diagnose" else self.timing_cache

    @property
    def logs_verbose(self) -> bool:
        """Whether every timed tactic is logged."""
        return self.verbose or self.preset == "diagnose"


DIAGNOSE_AVERAGES = 16


def read_options(section: Mapping[str, object]) -> TensorRTOptions:
    """Options from the `build` section; keys of other backends are left alone.

    Raises:
        InputError: a value of the wrong kind, or options that exclude each other.
    """
    known = {key: value for key, value in section.items() if key in TensorRTOptions.__struct_fields__}
    try:
        options = msgspec.convert(known, TensorRTOptions)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$.")
        raise InputError(text, where=f"build.{place.rstrip('`')}" if place else "build") from None
    if options.cache_mode == "replay" and options.timing_cache_from is None:
        raise InputError(
            "timing_cache: replay needs a build to replay",
            where="build.timing_cache",
            hint="timing_cache_from: FOLDER of that build's engines",
        )
    return options


def timing_settings(options: TensorRTOptions) -> dict[str, str]:
    """How inferences are timed: what two measurements must share to be compared."""
    return {name: "on" if getattr(options, name) else "off" for name in ("transfers", "cuda_graph", "spin_wait")}
