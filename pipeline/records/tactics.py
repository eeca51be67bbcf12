"""The tactic report: eligible, timed and selected by layer, each with its evidence. Public: other tools read it.

What a report has thousands of is `gc=False`: it can be in no cycle, and tracing it would cost a tenth of reading a log.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from pipeline.records.io import Part, Record
from pipeline.records.rung import Rung

TacticClass = Literal["sparse", "dense", "unknown"]
Region = Literal["cask", "myelin", "plugin", "dla"]


class Source(Part, frozen=True, kw_only=True):
    """One file that was read."""

    path: str
    sha256: str | None
    kind: Literal["log", "layer-info", "profile", "times", "plan"]
    producer: str | None


class Skipped(Part, frozen=True, kw_only=True):
    """What was given, or found in a folder that was given, and is no source of this report."""

    path: str
    why: str
    hint: str | None = None
    read: bool = False
    """True where it was read to its end and holds no TensorRT build; else nobody knows what it holds."""


class Pass(Part, frozen=True, kw_only=True):
    """One Found/Chose pair."""

    line: int
    profile: int | None = None
    region: str | None = None
    superseded_by: int | None = None
    """Index in `passes`."""
    eligible_declared: int | None = None
    eligible: list[str] = []
    selected_declared: int | None = None
    selected: list[str] = []


class Tactic(Part, frozen=True, kw_only=True, gc=False):
    """The tactic that the engine runs for a layer."""

    name: str | None
    kind: TacticClass = msgspec.field(name="class")
    id: str | None
    """As printed."""
    runner: str | None
    how: Literal["engine-dump", "layer-info", "choice"]


class BestTime(Part, frozen=True, kw_only=True, gc=False):
    """The fastest timed tactic of one class."""

    ms: float
    format: str | None


class Best(Part, frozen=True, kw_only=True, gc=False):
    """Fastest tactic per class; comparable only within one format combination."""

    sparse: BestTime | None
    dense: BestTime | None
    comparable: bool


class Candidates(Part, frozen=True, kw_only=True, gc=False):
    """Timed tactics by class, over all format combinations."""

    sparse: int
    dense: int
    unknown: int


class Reason(Part, frozen=True, kw_only=True, gc=False):
    """Why a layer stands as it does: a code of `codes` with this layer's figures."""

    code: str
    text: str


class Evidence(Part, frozen=True, kw_only=True, gc=False):
    """Where a statement comes from."""

    rung: str
    says: str
    source: int
    line: int | None
    kind: str


class TacticLayer(Part, frozen=True, kw_only=True, gc=False):
    """One engine layer."""

    id: str
    name: str
    profile: int | None = None
    region: Region | None = None
    parts: list[str] = []
    onnx_nodes: list[str] = []
    eligible: Rung = Rung.UNKNOWN
    timed: Rung = Rung.UNKNOWN
    selected: Rung = Rung.UNKNOWN
    tactic: Tactic | None = None
    best: Best | None = None
    candidates: Candidates | None = None
    cache: Literal["timed", "repeat", "global"] | None = None
    skipped: int = 0
    tuned_ms: float | None = None
    profile_ms: float | None = None
    reasons: list[Reason] = []
    evidence: list[Evidence] = []


class Conflict(Part, frozen=True, kw_only=True):
    """Sources that contradict each other."""

    code: str
    layers: list[str]
    text: str


class Truncated(Part, frozen=True, kw_only=True):
    """A piece of text that was cut and is therefore not a name."""

    source: int
    line: int | None
    """None where the same text stands in many lines."""
    text: str


class Finding(Part, frozen=True, kw_only=True):
    """A fact of a build or run that bears on its times or weights: a code of `codes.FINDINGS`."""

    code: str
    text: str
    source: int
    line: int
    names: list[str] = []
    """Weights, inputs or layers that it speaks of."""


class Shape(Part, frozen=True, kw_only=True):
    """One input's range in an optimization profile."""

    min: list[int] | None = None
    opt: list[int] | None = None
    max: list[int] | None = None


class Profile(Part, frozen=True, kw_only=True):
    """One optimization profile."""

    index: int
    inputs: dict[str, Shape] = {}


class Build(Part, frozen=True, kw_only=True):
    """One engine build (or one loaded engine's layer info)."""

    id: int
    arm: str | None = None
    """The recipe's arm and repeat, such as `sparse#2`, where a run made the build."""
    sources: list[int] = []
    result: Literal["passed", "failed", "cut"] | None = None
    tensorrt: str | None = None
    command: str | None = None
    log_level_seen: Literal["info", "verbose"] | None = None
    sparsity: Literal["enabled", "disabled", "forced"] | None = None
    typing: Literal["strong", "weak"] | None = None
    precision: list[str] = []
    machine: dict[str, str] = {}
    builder: dict[str, str] = {}
    profiles: list[Profile] = []
    timing_cache: dict[str, str | None] = {}
    memory: dict[str, str] = {}
    passes: list[Pass] = []
    eligible: list[str] = []
    selected: list[str] = []
    disputed: list[str] = []
    layers: list[TacticLayer] = []
    conflicts: list[Conflict] = []
    skipped_tactics: int = 0
    truncated: list[Truncated] = []
    findings: list[Finding] = []
    timed_shapes: dict[str, list[int]] = {}
    """Input -> the shape that trtexec really timed."""
    performance: dict[str, float] = {}
    """trtexec's own summary, such as `throughput_qps`, `gpu_compute_ms.median`."""
    calibration_tactics: int = 0
    """Timed tactics of an INT8 calibration engine in the same log: in no layer's figures."""
    hint: str | None = None
    """What would tell more, where this log says little."""


class LoadedRun(Part, frozen=True, kw_only=True):
    """A run of trtexec that loaded a plan: no build, and no evidence about the plan's sparsity."""

    source: int
    line: int
    command: str
    tensorrt: str | None = None
    machine: dict[str, str] = {}
    findings: list[Finding] = []
    timed_shapes: dict[str, list[int]] = {}
    performance: dict[str, float] = {}


class TacticReport(Record, frozen=True, kw_only=True, tag="sparsegate.tactics/1"):
    """Output of `sparsegate tactics`, and of the `tactics` stage."""

    applicable: bool = True
    """False where the backend has no sparse kernels: rungs 4-6 are then not applicable."""
    why_not: str | None = None
    sources: list[Source] = []
    builds: list[Build] = []
    runs: list[LoadedRun] = []
    skipped: list[Skipped] = []
    """Files that could not be read in folders, and named ones without a build; other files of a folder are passed over in silence."""
