"""What the gate says: each rule with its numbers, the ladder, the findings, one outcome."""

from __future__ import annotations

from enum import StrEnum

from pipeline.records.estimate import ProfileBound
from pipeline.records.io import Part, Record
from pipeline.records.rung import Rung, Step


class RuleResult(StrEnum):
    """Pass needs all rules to pass; one fail fails; else inconclusive."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class JudgedRule(Part, frozen=True, kw_only=True):
    """One budget, judged."""

    id: str
    """Stable within a recipe: kind and what it is about, such as `latency:sparse/dense:batch=32:p50`."""
    kind: str
    outcome: RuleResult
    text: str
    """The rule in words, with its budget."""
    why: str
    """What decided, or what kept it from being decided and what would help."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    budget: float | None = None
    unit: str = ""
    n: int | None = None
    alpha: float | None = None
    control: str | None = None
    """The A/A comparison that stood beside it, with its interval."""
    needs: str | None = None
    """What would decide it, where it is inconclusive."""
    label: str | None = None
    """`control`, or `deployment comparison` where more than the pruning differs."""


class Rungs(Part, frozen=True, kw_only=True):
    """One layer, engine or service on the ladder."""

    of: str
    """Layer id; `engine batch=32` for rung 8; `service` for rung 9."""
    steps: dict[Step, Rung]
    texts: dict[Step, str] = {}
    """For a rung that is not yes: the rule or measurement that says why; for one that is: its evidence."""
    proven: Step | None = None
    """Top of the unbroken prefix of proven (or not applicable) rungs."""
    missed: Step | None = None
    """The first rung that is not proven."""
    above_gap: list[Step] = []
    """Proofs above the first rung missed."""
    decision: str = ""
    """Why the layer is masked or dense."""


class Finding(Part, frozen=True, kw_only=True):
    """One row of the diagnosis table that applies."""

    id: str
    observation: str
    establishes: str
    next: str
    evidence: list[str] = []


class Verdict(Record, frozen=True, kw_only=True, tag="sparsegate.verdict/1"):
    """Output of `gate`."""

    outcome: RuleResult
    rules: list[JudgedRule]
    ladder: list[Rungs] = []
    findings: list[Finding] = []
    bounds: list[ProfileBound] = []
    """At most so much faster by the profiled share of the masked layers, one per shape."""
    notes: list[str] = []
    alpha: float | None = None
    baseline: str | None = None
    """Name of the baseline that rules were held against."""
