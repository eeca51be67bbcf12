"""What `measure` leaves: samples by arm and shape, layer times, engine quality, sizes, and the conditions they were taken under."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.io import Part, Record
from pipeline.records.quality import Quality


class Estimate(Part, frozen=True, kw_only=True):
    """A figure with its interval."""

    value: float
    low: float | None
    high: float | None
    confidence: float
    n: int
    """Observations the interval rests on: rounds, or effective samples."""


class Timing(Part, frozen=True, kw_only=True):
    """Latency of one arm at one shape, in ms. Summaries are for reading; a gate judges the samples."""

    arm: str
    shape: str
    """Id of the shape, such as `batch=32`."""
    profile: int = 0
    inputs: dict[str, list[int]] = {}
    """The shapes that really ran."""
    metric: str
    """`gpu_compute`, `host_latency`, `enqueue` or `request`."""
    samples: int
    rounds: int
    quantiles: dict[str, Estimate] = {}
    """By `p50`, `p90`, `p99`, `mean`; a quantile with too few samples is absent."""


class Ratio(Part, frozen=True, kw_only=True):
    """Latency of one arm over another at one shape: below 1 is faster."""

    arm: str
    over: str
    shape: str
    metric: str
    quantile: str
    ratio: Estimate
    control: bool = False
    """Both arms run the same kernels: the ratio shows the noise, not an effect."""


class LayerTime(Part, frozen=True, kw_only=True):
    """Time of one engine layer from the backend's profiler, a pass apart from the latency samples; ms."""

    arm: str
    shape: str
    layer: str
    onnx_nodes: list[str] = []
    passes_ms: list[float]
    """One mean per profiling pass."""


class Size(Part, frozen=True, kw_only=True):
    """One answer to "how large is it?"; `question` says which."""

    arm: str
    name: str
    bytes: int
    question: str


class Reading(Part, frozen=True, kw_only=True):
    """What the device's own counters said while one arm was timed at one shape."""

    arm: str
    shape: str
    clock_mhz: list[float] = []
    """Samples of the graphics (SM) clock."""
    temperature_c: list[float] = []
    power_w: list[float] = []
    slowdown: list[str] = []
    """Throttle reasons seen, such as `hw_thermal_slowdown`, `sw_power_cap`."""
    other_processes: int | None = None
    """Processes of others on the device; None: not observable, as in a container."""


class Energy(Part, frozen=True, kw_only=True):
    """Energy per inference of one arm at one shape, in millijoules."""

    arm: str
    shape: str
    millijoules: Estimate
    how: str
    """What measured it."""


class Conditions(Part, frozen=True, kw_only=True):
    """What could make the times unfit to judge."""

    backend: str
    device: str
    settings: dict[str, str] = {}
    """What two records must share to be compared: transfers, graph mode, threads, clocks, driver."""
    unobserved: list[str] = []
    warnings: list[str] = []
    simulated: str | None = None
    """Set when the figures do not come from running an engine here: says from what."""
    readings: list[Reading] = []
    facts: dict[str, str] = {}
    """What was seen of the machine while it timed, for people: clocks, power, temperature."""


class EngineParity(Part, frozen=True, kw_only=True):
    """One engine against one oracle at one shape of one profile, on one kind of input."""

    engine: str
    against: str
    """`twin`: same weights, no sparsity flag; `onnxruntime`: the ONNX file."""
    profile: int
    shape: str
    """`min`, `opt` or `max` of the profile."""
    probe: str
    """`random`; `nan` or `inf`: one such value in the first row; `rows`: one row repeated."""
    max_rel: float
    """Largest difference between finite values, as a share of the oracle's largest."""
    max_abs: float | None = None
    """The same as it stands."""
    tolerance: float | None = None
    """Largest `max_rel` (and `rows_differ`) that agrees."""
    lost_nonfinite: int = 0
    """Values that are finite here and NaN or infinite in the oracle: sparse kernels skip products with zeros."""
    new_nonfinite: int = 0
    """Values that are NaN or infinite here and finite in the oracle."""
    rows_differ: float = 0.0
    """rows: largest difference between equal rows, as a share."""
    note: str = ""
    """What could not be compared: outputs of other shapes."""
    passed: bool


class Measurement(Record, frozen=True, kw_only=True, tag="sparsegate.measurement/1"):
    """Output of `measure` and of `bench`."""

    samples: Artifact | None
    """npz: every latency sample with arm, shape, round and block."""
    timings: list[Timing]
    ratios: list[Ratio] = []
    layers: list[LayerTime] = []
    quality: dict[str, list[Quality]] = {}
    """By arm; also `torch:dense` and `torch:masked`, carried along for comparison."""
    sizes: list[Size] = []
    energy: list[Energy] = []
    parity: list[EngineParity] = []
    """Does each engine compute what its ONNX file says?"""
    conditions: Conditions
    stopped: str = ""
    """Why sampling ended: decided, time limit, rounds."""
