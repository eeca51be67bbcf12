"""What a rule is judged from: the records, and statistics that somebody who knows the samples computes."""

from __future__ import annotations

from typing import Protocol

import msgspec

from pipeline.records.baseline import Baseline
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Estimate


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """A loss or a level of quality, with its interval."""

    value: float
    low: float | None
    high: float | None
    n: int
    text: str
    """How it was computed, with the counts."""
    needed: int | None = None
    """Samples that would decide."""
    name: str = ""
    """Of the slice."""
    over: bool = False
    """Of a slice: over the budget after correction for their number."""


class Statistics(Protocol):
    """Computes from samples and predictions. A string in place of a figure says why there is none."""

    def ratio(self, arm: str, over: str, shape: str, metric: str, quantile: str) -> Estimate | str:
        """Latency of one arm over another, paired by round."""
        ...

    def absolute(self, arm: str, shape: str, metric: str, quantile: str) -> Estimate | str:
        """Latency of one arm in ms."""
        ...

    def between_builds(self, pairs: list[tuple[str, str]], shape: str, metric: str, quantile: str) -> Estimate | str:
        """Ratio over several builds, their spread in the interval."""
        ...

    def unsettled(self, shape: str) -> list[str]:
        """Arms whose warm-up never became steady."""
        ...

    def arms(self, shape: str) -> list[str]:
        """Arms that were sampled at a shape, A/A arms and rebuilt ones among them."""
        ...

    def metrics(self, arm: str, shape: str) -> list[str]:
        """Latency metrics that were sampled."""
        ...

    def loss(self, arm: str, over: str, head: str, budget: float) -> Loss | str:
        """Loss of quality of an arm against another on the same samples."""
        ...

    def level(self, arm: str, head: str, budget: float) -> Loss | str:
        """Quality of an arm."""
        ...

    def slices(self, arm: str, over: str, head: str, wanted: str, budget: float) -> list[Loss] | str:
        """Losses by slice, largest first: all slices for `worst`, else the one named `axis=name`."""
        ...


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a rule may look at."""

    evidence: Evidence
    statistics: Statistics
    alpha: float
    baseline: Baseline | None = None
