"""A latency budget: metric x profile x shape x quantile, absolute or relative to an arm or a baseline."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from pipeline.records.measurement import Estimate, Timing
from pipeline.records.verdict import JudgedRule, RuleResult
from pipeline.verdict import comparable, control
from pipeline.verdict.budget import BASELINE, Rule
from pipeline.verdict.conditions import Question, refusal
from pipeline.verdict.decision import WORDS, at_most
from pipeline.verdict.facts import Facts

METRIC_ORDER = ("gpu_compute", "host_latency", "request", "enqueue")
"""Which one a rule without a metric is about: the first that was sampled."""
LEAST_BUILDS = 3
"""Builds per arm for a claim about the recipe."""


class _Case(NamedTuple):
    """One shape of a rule."""

    shape: str
    timing: Timing | None
    metric: str


def judge(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """One row per shape that the rule is about."""
    measured = facts.evidence.measure
    timings = [t for t in measured.timings if t.arm == rule.arm and rule.profile in (None, t.profile)] if measured else []
    shapes = [f"batch={rule.batch}"] if rule.batch is not None else list(dict.fromkeys(t.shape for t in timings))
    if not shapes:
        return [_blank(rule, "any shape", rule.metric or "latency", f"no latency of {rule.arm} was measured", "run the measure stage")]
    return [_judge_shape(rule, _case(rule, facts, shape, timings), facts) for shape in shapes]


def _case(rule: Rule, facts: Facts, shape: str, timings: list[Timing]) -> _Case:
    sampled = facts.statistics.metrics(rule.arm, shape)
    metric: str = rule.metric or next((name for name in METRIC_ORDER if name in sampled), METRIC_ORDER[1])
    return _Case(shape, next((t for t in timings if t.shape == shape and t.metric == metric), None), metric)


def is_decided(rule: Rule, shape: str, facts: Facts) -> bool:
    """Whether the samples so far pass or fail the rule, its A/A comparison considered: sampling may end."""
    case = _case(rule, facts, shape, [])
    arms = (rule.arm,) if rule.over in (None, BASELINE) else (rule.arm, str(rule.over))
    row = _measured(rule, case, facts, arms)
    return row.outcome is not RuleResult.INCONCLUSIVE


def _judge_shape(rule: Rule, case: _Case, facts: Facts) -> JudgedRule:
    arms = (rule.arm,) if rule.over in (None, BASELINE) else (rule.arm, str(rule.over))
    why_not = _misfit(rule, case, facts) or refusal(Question(arms, case.shape, case.metric), facts)
    if why_not is not None:
        return _blank(rule, case.shape, case.metric, *why_not)
    return _measured(rule, case, facts, arms)


def _measured(rule: Rule, case: _Case, facts: Facts, arms: tuple[str, ...]) -> JudgedRule:
    budget = rule.at_most
    assert budget is not None  # parse() asks for it
    estimate = _estimate(rule, case, facts)
    if isinstance(estimate, str):
        needs = "gate --baseline NAME, of a run under the same conditions" if rule.over == BASELINE else "measure longer (measure.seconds)"
        return _blank(rule, case.shape, case.metric, estimate, needs)
    row = _blank(rule, case.shape, case.metric, "", None)
    outcome = at_most(estimate.low, estimate.high, budget)
    row = msgspec.structs.replace(
        row,
        outcome=outcome,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        alpha=facts.alpha,
        why=WORDS[outcome],
    )
    if outcome is RuleResult.INCONCLUSIVE:
        row = msgspec.structs.replace(row, needs=_more(estimate, budget))
    return control.checked(row, facts, arms, case.shape, case.metric, rule.quantile)


def _estimate(rule: Rule, case: _Case, facts: Facts) -> Estimate | str:
    statistics = facts.statistics
    if rule.over is None:
        return statistics.absolute(rule.arm, case.shape, case.metric, rule.quantile)
    if rule.over == BASELINE:
        return comparable.against_baseline(rule, case.shape, case.metric, facts)
    pairs = builds(statistics.arms(case.shape), rule.arm, rule.over)
    if rule.claim == "recipe" and len(pairs) < LEAST_BUILDS:
        return f"a claim about the recipe needs {LEAST_BUILDS} builds of both arms, and {len(pairs)} were timed (build.repeats)"
    if rule.claim != "engine" and len(pairs) >= LEAST_BUILDS:
        return statistics.between_builds(pairs, case.shape, case.metric, rule.quantile)
    return statistics.ratio(rule.arm, rule.over, case.shape, case.metric, rule.quantile)


def builds(arms: list[str], arm: str, over: str) -> list[tuple[str, str]]:
    """Builds of two arms, paired by their number: `sparse#2` with `dense#2`."""
    found: dict[str, dict[str, str]] = {arm: {}, over: {}}
    for name in arms:
        base, _, number = name.partition("#")
        if base in found and "@" not in name:
            found[base][number or "1"] = name
    return [(found[arm][k], found[over][k]) for k in sorted(found[arm].keys() & found[over].keys())]


def _misfit(rule: Rule, case: _Case, facts: Facts) -> tuple[str, str] | None:
    """What really ran is not what the rule is about."""
    if case.timing is None:
        return f"no {case.metric} of {rule.arm} was measured at {case.shape}", "add the batch to measure.batches, or choose another metric"
    ran = case.timing.inputs
    if not ran:
        return "the record does not say which input shapes really ran", "measure again"
    batch = case.shape.removeprefix("batch=")
    leading = {dims[0] for dims in ran.values() if dims}
    if batch.isdigit() and (int(batch) not in leading or leading - {int(batch), 1}):
        shapes = ", ".join(f"{name} {dims}" for name, dims in ran.items())
        return (
            f"the shapes that really ran ({shapes}) are not those of {case.shape}",
            "give the shapes to the timing tool and measure again",
        )
    if rule.over in (None, BASELINE):
        return None
    measured = facts.evidence.measure
    others = [t for t in measured.timings if (t.arm, t.shape, t.metric) == (rule.over, case.shape, case.metric)] if measured else []
    if not others:
        return f"no {case.metric} of {rule.over} was measured at {case.shape}", f"time the arm {rule.over} too"
    if others[0].inputs != ran:
        return f"{rule.arm} and {rule.over} ran different shapes", "measure both in one run"
    return None


def _more(estimate: Estimate, budget: float) -> str | None:
    """How much longer to measure: half-widths shrink with the square root of time."""
    if estimate.low is None or estimate.high is None:
        return "measure longer (measure.seconds)"
    gap = abs(estimate.value - budget)
    half = max(estimate.high - estimate.value, estimate.value - estimate.low)
    if gap < half / 30:
        return "the value is at the budget: no reasonable time decides; change the budget or the model"
    return f"measure about {math.ceil(1.2 * (half / gap) ** 2)} times as long (measure.seconds)"


def _blank(rule: Rule, shape: str, metric: str, why: str, needs: str | None) -> JudgedRule:
    """An inconclusive row that names the rule."""
    of = f"{rule.arm}/{rule.over}" if rule.over else rule.arm
    what = f"{rule.quantile} {metric.replace('_', ' ')} of {rule.arm} at {shape}"
    budget = f"at most {rule.at_most:g} of {rule.over}'s" if rule.over else f"at most {rule.at_most:g} ms"
    return JudgedRule(
        id=f"latency:{of}:{shape}:{rule.quantile}:{metric}" + (f":{rule.claim}" if rule.claim else ""),
        kind="latency",
        outcome=RuleResult.INCONCLUSIVE,
        text=f"{what} {budget}",
        why=why,
        budget=rule.at_most,
        unit="ratio" if rule.over else "ms",
        needs=needs,
        label="deployment comparison" if rule.over == BASELINE else None,
    )
