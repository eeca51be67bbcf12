"""May this run be held against a baseline, and the ratio if it may."""

from __future__ import annotations

import math

from pipeline.records.baseline import Baseline
from pipeline.records.measurement import Estimate, Measurement
from pipeline.verdict.budget import Rule
from pipeline.verdict.facts import Facts

MAY_DIFFER = frozenset({"precision", "model", "tensorrt", "onnxruntime", "typing"})
"""Settings of a deployment that may change between releases; everything else that was recorded must be equal."""
NO_BASELINE = "no baseline was given (gate --baseline NAME)"


def against_baseline(rule: Rule, shape: str, metric: str, facts: Facts) -> Estimate | str:
    """Ratio of this run's latency over the baseline's; a string says why they must not be compared.

    The two were not interleaved, so nothing cancels: the bounds of both enter, combined on the log scale as independent
    (method of variance estimates recovery; Zou & Donner, Statistics in Medicine 27, 2008).
    """
    measured, baseline = facts.evidence.measure, facts.baseline
    if baseline is None or measured is None:
        return NO_BASELINE
    different = differences(measured, baseline)
    if different:
        return "not comparable with the baseline: " + "; ".join(different)
    stored = [e for e in baseline.latency if (e.shape, e.metric, e.quantile) == (shape, metric, rule.quantile)]
    if not stored:
        return f"the baseline {baseline.name} has no {rule.quantile} {metric} at {shape}"
    ran = next((t.inputs for t in measured.timings if (t.arm, t.shape, t.metric) == (rule.arm, shape, metric)), None)
    if ran != stored[0].inputs:
        return f"the baseline was measured with other input shapes: {stored[0].inputs}, now {ran}"
    now = facts.statistics.absolute(rule.arm, shape, metric, rule.quantile)
    return now if isinstance(now, str) else ratio_of(now, stored[0].estimate)


def differences(measured: Measurement, baseline: Baseline) -> list[str]:
    """Conditions that must be equal and are not, or are not recorded."""
    now = {"backend": measured.conditions.backend, "device": measured.conditions.device, **measured.conditions.settings}
    then = {"backend": baseline.backend, "device": baseline.device, **baseline.settings}

    def said(facts: dict[str, str], key: str) -> str:
        return repr(facts[key]) if key in facts else "not recorded"

    keys = [key for key in dict.fromkeys([*then, *now]) if key not in MAY_DIFFER]
    return [f"{key} was {said(then, key)}, is {said(now, key)}" for key in keys if then.get(key) != now.get(key)]


def ratio_of(now: Estimate, then: Estimate) -> Estimate:
    """Ratio of two independent positive estimates with bounds."""
    value = math.log(now.value / then.value)
    low = high = None
    if now.low and then.high and now.low > 0:
        low = math.exp(value - math.hypot(math.log(now.value / now.low), math.log(then.high / then.value)))
    if now.high and then.low and then.low > 0:
        high = math.exp(value + math.hypot(math.log(now.high / now.value), math.log(then.value / then.low)))
    return Estimate(value=math.exp(value), low=low, high=high, confidence=min(now.confidence, then.confidence), n=min(now.n, then.n))
