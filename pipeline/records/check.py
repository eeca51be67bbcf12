"""The ONNX check: is each weight 2:4 where its operator reads it, and would TensorRT find it eligible?"""

from __future__ import annotations

from enum import StrEnum

from pipeline.records.io import Part, Record
from pipeline.records.rung import Rung


class Outcome(StrEnum):
    """How one rule stands for one layer. A hint is a prediction about selection, never about eligibility."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    HINT = "hint"


class RuleOutcome(Part, frozen=True, kw_only=True):
    """One rule of `codes` applied to one layer."""

    id: str
    outcome: Outcome
    text: str


class Target(Part, frozen=True, kw_only=True):
    """What the model is to run on; None: not said."""

    sm: str | None = None
    """Compute capability, such as `8.6`."""
    tensorrt: str | None = None
    """Version, such as `10.13`."""
    typing: str | None = None
    """`strong` or `weak`."""


class CheckedLayer(Part, frozen=True, kw_only=True):
    """One operand of one operator, as the operator reads it."""

    node: str
    graph: str
    """Path of the subgraph or local function; empty for the main graph."""
    op: str
    weight: str | None
    operand: int
    shape: list[int] | None
    axis: int | None
    """Reduction axis of `shape`."""
    dtype: str | None
    two_four: bool | None
    """None only where the weight is not a constant."""
    groups_violating: int = 0
    zero_fraction: float = 0.0
    negative_zeros: int = 0
    nonfinite: int = 0
    two_four_on_other_axes: list[int] = []
    groups: int | None = None
    """Groups of 4 along the axis; None where it is no multiple of 4."""
    located: list[list[int]] = []
    """Index in `shape` of the first value of the first violating groups."""
    path: list[str] = []
    """Operators between the stored weight and this one."""
    quantized: str | None = None
    """Type of the quantized values behind Q/DQ."""
    two_four_before_quantization: bool | None = None
    """The float values in front of QuantizeLinear; None where there are none."""
    siblings: list[str] = []
    """Nodes that share this one's input: fused side by side, they go together."""
    eligible: Rung = Rung.UNKNOWN
    rules: list[RuleOutcome] = []


class CheckTotals(Part, frozen=True, kw_only=True):
    """Counts over all layers."""

    layers: int
    two_four: int
    eligible: int


class ExternalFile(Part, frozen=True, kw_only=True):
    """A file of external data that weights were read from."""

    path: str
    """Relative to the model."""
    sha256: str
    size_bytes: int


class CheckedModel(Part, frozen=True, kw_only=True):
    """The file that was checked."""

    path: str
    sha256: str
    external: list[ExternalFile] = []


class ParseError(Part, frozen=True, kw_only=True):
    """One complaint of a parser."""

    code: str
    text: str
    node: str | None = None
    op: str | None = None


class ParseReport(Part, frozen=True, kw_only=True):
    """What a real ONNX parser of TensorRT said of the model."""

    parser: str
    """Package and version."""
    parsed: bool
    layers: int
    """Layers of the network that it made."""
    errors: list[ParseError] = []
    log: list[str] = []
    """Its first warnings and errors, as logged."""


class CheckReport(Record, frozen=True, kw_only=True, tag="sparsegate.check/1"):
    """Output of `sparsegate check`."""

    model: CheckedModel
    target: Target
    layers: list[CheckedLayer]
    totals: CheckTotals
    parse: ParseReport | None = None
    """None: not asked."""
    notes: list[str] = []
    """Facts about the file that concern no single layer, such as initializers that no node reads."""
