"""What changed between two builds or two runs of one network, and how stable n builds are."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pipeline.records.io import Part, Record
from pipeline.records.rung import Rung, Step
from pipeline.records.tactics import TacticClass


class ChangeKind(StrEnum):
    """One way in which the layers that hold some ONNX nodes differ between A and B."""

    NEW = "new"
    """Only B has layers with these nodes."""
    GONE = "gone"
    """Only A has."""
    SPLIT = "split"
    """One layer in A, several in B."""
    MERGED = "merged"
    """Several layers in A, one in B."""
    REGROUPED = "regrouped"
    """Several in both, cut otherwise."""
    RENAMED = "renamed"
    SELECTION = "selection"
    """Sparse in one, dense in the other."""
    ELIGIBILITY = "eligibility"
    TACTIC = "tactic"
    PRECISION = "precision"
    FORMAT = "format"
    REGION = "region"
    REFORMATS = "reformats"
    """Another number of reformat layers."""
    TIME = "time"
    HIDDEN_IN_A = "not shown by A"
    """Sparse or eligible in B, while A names some of its layers only and not this one, or does not tell what it selected."""
    HIDDEN_IN_B = "not shown by B"


class Side(Part, frozen=True, kw_only=True):
    """One engine layer on one side of a change."""

    layer: str
    kind: TacticClass = "unknown"
    tactic: str | None = None
    """The kernel's name, or its id where no name is known."""
    precision: str | None = None
    format: str | None = None
    region: str | None = None
    eligible: Rung = Rung.UNKNOWN
    ms: float | None = None


class Change(Part, frozen=True, kw_only=True):
    """The smallest group of engine layers that holds the same ONNX nodes in A and in B."""

    kinds: list[ChangeKind]
    nodes: list[str]
    a: list[Side]
    b: list[Side]
    a_ms: float | None = None
    """Sum over the layers and their reformats; None unless all layers have a time."""
    b_ms: float | None = None

    @property
    def delta_ms(self) -> float | None:
        """Time that B takes more."""
        return None if self.a_ms is None or self.b_ms is None else self.b_ms - self.a_ms


class Fact(Part, frozen=True, kw_only=True):
    """One fact that A and B do not share."""

    name: str
    a: str | None
    b: str | None


class Point(Part, frozen=True, kw_only=True):
    """One figure, with its interval where the record has one."""

    value: float
    low: float | None = None
    high: float | None = None


class Figure(Part, frozen=True, kw_only=True):
    """One figure of both runs; None where a run lacks it."""

    name: str
    unit: str = ""
    a: Point | None
    b: Point | None


class RungChange(Part, frozen=True, kw_only=True):
    """One rung that stands otherwise in B."""

    of: str
    step: Step
    a: Rung | None
    b: Rung | None
    why: str = ""
    """B's text."""


class Totals(Part, frozen=True, kw_only=True):
    """One side as a whole."""

    layers: int
    selected: int | None
    """Layers that run a sparse tactic; None where the side tells it of none."""
    unknown: int = 0
    """Layers of which it does not tell."""
    ms: float | None = None
    result: Literal["passed", "failed", "cut"] | None = None
    """How the build ended, where its log tells."""


class DiffReport(Record, frozen=True, kw_only=True, tag="sparsegate.diff/1"):
    """Output of `sparsegate diff A B`."""

    a: str
    b: str
    times: Literal["profile", "tuner"] | None = None
    """Where the times are from: a layer profile, or the autotuner, whose times are no layer times; None without any."""
    environment: list[Fact] = []
    figures: list[Figure] = []
    rungs: list[RungChange] = []
    changes: list[Change] = []
    """By time lost or gained, the largest first, then those without times."""
    same: int = 0
    """Groups of layers without a change."""
    a_totals: Totals
    b_totals: Totals
    notes: list[str] = []
    next: str = ""
    """The one thing to look at or run next."""


class Spread(Part, frozen=True, kw_only=True):
    """Smallest and largest of one figure over builds."""

    low: float
    high: float
    n: int


class LayerStability(Part, frozen=True, kw_only=True):
    """One group of ONNX nodes over n builds."""

    layer: str
    nodes: list[str]
    selected: int
    """Builds in which it runs a sparse tactic."""
    dense: int
    unknown: int
    """Builds that do not tell, or lack it."""
    sparse_ms: Spread | None = None
    """Of the best sparse time that the autotuner took."""
    dense_ms: Spread | None = None


class StabilityReport(Record, frozen=True, kw_only=True, tag="sparsegate.stability/1"):
    """How alike n builds of one network are; layers whose selection changes come first."""

    builds: list[str]
    layers: list[LayerStability]
    changing: int
    """Layers that are sparse in some builds and dense in others."""
    environment: list[str] = []
    """Names of facts that are not the same in all builds: what was compared is then more than chance."""
    next: str = ""
    """The one thing to look at or run next."""
