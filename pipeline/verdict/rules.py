"""The kinds of budgets: one row each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pipeline.records.verdict import JudgedRule
from pipeline.verdict import amount_rules, latency_rule, layer_rules, quality_rule
from pipeline.verdict.budget import Rule
from pipeline.verdict.facts import Facts


class Kind(NamedTuple):
    """One kind of budget."""

    judge: Callable[[Rule, Facts], list[JudgedRule]]
    text: str


KINDS: dict[str, Kind] = {
    "latency": Kind(latency_rule.judge, "metric x profile x shape x quantile, absolute or relative to an arm or a baseline"),
    "quality": Kind(quality_rule.judge, "overall, per slice, worst slice, per head; paired by sample"),
    "rungs": Kind(layer_rules.rungs, "so many layers, or named ones, on a rung of the ladder, none disputed"),
    "stability": Kind(layer_rules.stability, "sparse tactics selected in at least k of n builds"),
    "size": Kind(amount_rules.size, "bytes of a file or archive"),
    "energy": Kind(amount_rules.energy, "energy per inference where it was measured"),
}
