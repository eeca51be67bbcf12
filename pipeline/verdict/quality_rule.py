"""A quality budget: overall, per slice or worst slice, per head; against an arm, a baseline, or alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pipeline.records.quality import HeadQuality, Quality
from pipeline.records.verdict import JudgedRule, RuleResult
from pipeline.verdict.budget import BASELINE, DENSE, Rule
from pipeline.verdict.comparable import NO_BASELINE
from pipeline.verdict.decision import WORDS, at_least, at_most
from pipeline.verdict.facts import Facts, Loss


def judge(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """One row per head and per question (loss, level)."""
    quality = _quality(facts, rule.arm)
    if quality is None:
        return [_row(rule, rule.head or "every head", f"no quality of {rule.arm} was measured", "run the measure stage")]
    heads = [head for head in quality.heads if rule.head in (None, head.head)]
    if not heads:
        known = ", ".join(head.head for head in quality.heads)
        return [_row(rule, str(rule.head), f"no head is called {rule.head!r}", f"known heads: {known}")]
    rows = []
    for head in heads:
        if rule.drop_at_most is not None:
            rows.append(_not_finite(rule, head, facts) or _loss(rule, head, quality, facts))
        if isinstance(rule.at_least, float | int):
            rows.append(_not_finite(rule, head, facts, level=True) or _level(rule, head, quality, facts, float(rule.at_least)))
    return rows


def _not_finite(rule: Rule, head: HeadQuality, facts: Facts, *, level: bool = False) -> JudgedRule | None:
    """Where outputs are NaN or infinite, of the arm or of what it is held against, no score says how good a model is."""
    for arm in [rule.arm] if level or rule.over == BASELINE else [rule.arm, rule.over or DENSE]:
        quality = _quality(facts, arm)
        one = next((one for one in quality.heads if one.head == head.head), None) if quality else None
        if one is not None and one.nonfinite:
            why = f"{one.nonfinite} of {one.n} samples have a NaN or infinite output of {arm}"
            return _row(rule, head.head, why, "see `nonfinite` of each weight in `sparsegate check --format json`", level=level)
    return None


def _loss(rule: Rule, head: HeadQuality, quality: Quality, facts: Facts) -> JudgedRule:
    budget = rule.drop_at_most
    assert budget is not None
    over = rule.over or DENSE
    if over == BASELINE:
        return _against_baseline(rule, head, quality, facts, budget)
    other = _quality(facts, over)
    misfit = _misfit(facts, rule.arm, quality) or (
        (f"no quality of {over} was measured", f"measure the arm {over} too") if other is None else _misfit(facts, over, other)
    )
    if misfit:
        return _row(rule, head.head, *misfit)
    if other is not None and other.split != quality.split:
        return _row(rule, head.head, f"{rule.arm} was evaluated on {quality.split}, {over} on {other.split}", "evaluate both on one split")
    if rule.slice is not None:
        return _slices(rule, head, facts, over, budget)
    found = facts.statistics.loss(rule.arm, over, head.head, budget)
    if isinstance(found, str):
        return _row(rule, head.head, found, "measure again")
    return _decided(rule, head, facts, found, at_most(found.low, found.high, budget))


def _slices(rule: Rule, head: HeadQuality, facts: Facts, over: str, budget: float) -> JudgedRule:
    wanted = str(rule.slice)
    found = facts.statistics.slices(rule.arm, over, head.head, wanted, budget)
    if isinstance(found, str):
        return _row(rule, head.head, found, "name a slice as axis=name, or `worst`")
    outcome = slices_outcome(found, budget)
    # what decides: a slice that is over, else the one whose bound is farthest out
    deciding = next((one for one in found if one.over), None) or max(found, key=lambda one: (one.high is None, one.high or 0.0, one.value))
    undecided = [one for one in found if one.high is None or one.high >= budget]
    row = _decided(rule, head, facts, deciding, outcome)
    if outcome is not RuleResult.INCONCLUSIVE:
        return _with(row, why=f"{WORDS[outcome]} ({deciding.name}; {len(found)} slices)")
    most = max((one.needed or 0 for one in undecided), default=0)
    least = min(one.n for one in undecided)
    needs = f"about {most} samples per slice (the smallest undecided one has {least}), or a wider budget" if most else None
    return _with(
        row, why=f"{len(undecided)} of {len(found)} slices are too small to decide, first {deciding.name}: {deciding.text}", needs=needs
    )


def slices_outcome(found: Sequence[Loss], budget: float) -> RuleResult:
    """Fail when Holm's procedure accuses a slice; pass when every slice is shown to be within."""
    if any(one.over for one in found):
        return RuleResult.FAIL
    if all(one.high is not None and one.high < budget for one in found):
        return RuleResult.PASS
    return RuleResult.INCONCLUSIVE


def _level(rule: Rule, head: HeadQuality, quality: Quality, facts: Facts, budget: float) -> JudgedRule:
    misfit = _misfit(facts, rule.arm, quality)
    if misfit:
        return _row(rule, head.head, *misfit, level=True)
    found = facts.statistics.level(rule.arm, head.head, budget)
    if isinstance(found, str):
        return _row(rule, head.head, found, "measure again", level=True)
    compare = at_least if head.higher_is_better else at_most
    return _decided(rule, head, facts, found, compare(found.low, found.high, budget), level=True)


def _against_baseline(rule: Rule, head: HeadQuality, quality: Quality, facts: Facts, budget: float) -> JudgedRule:
    """The baseline's samples are not kept, so its value stands as a target, and only this run's interval is left."""
    if facts.baseline is None:
        return _row(rule, head.head, NO_BASELINE, "gate --baseline NAME")
    misfit = _misfit(facts, rule.arm, quality)
    if misfit:
        return _row(rule, head.head, *misfit)
    stored = [e for e in facts.baseline.quality if (e.head, e.metric, e.split) == (head.head, head.metric, quality.split)]
    if not stored or stored[0].n != head.n:
        return _row(
            rule,
            head.head,
            f"the baseline has no {head.metric} of {head.head} on the {quality.split} split of {head.n} samples",
            "save a baseline of this data",
        )
    found = facts.statistics.level(rule.arm, head.head, stored[0].value - budget)
    if isinstance(found, str):
        return _row(rule, head.head, found, "measure again")
    target, sign = stored[0].value, 1.0 if head.higher_is_better else -1.0
    low, high = (found.low, found.high) if sign > 0 else (found.high, found.low)
    loss = Loss(
        value=sign * (target - found.value),
        low=None if high is None else sign * (target - high),
        high=None if low is None else sign * (target - low),
        n=found.n,
        text=f"{found.text}, against the baseline's {target:.4f} as it stands (unpaired)",
        needed=found.needed,
    )
    return _with(_decided(rule, head, facts, loss, at_most(loss.low, loss.high, budget)), label="deployment comparison")


def _quality(facts: Facts, arm: str) -> Quality | None:
    measured = facts.evidence.measure
    found = measured.quality.get(arm, []) if measured else []
    return next((one for one in found if one.split == "test"), found[0] if found else None)


def _misfit(facts: Facts, arm: str, quality: Quality) -> tuple[str, str] | None:
    """Quality of a model that another program ran says nothing about the engine that is released."""
    released = (
        facts.evidence.build.backend
        if facts.evidence.build
        else facts.evidence.measure.conditions.backend
        if facts.evidence.measure
        else None
    )
    if arm.startswith("torch:"):
        return f"{arm} is not an engine: its outputs were computed by {quality.backend}", "judge an engine's arm"
    if quality.backend != released:
        return (
            f"{arm} was evaluated with {quality.backend}, and the engine to release runs on {released or 'an unknown backend'}",
            "evaluate the engine itself",
        )
    return None


def _decided(rule: Rule, head: HeadQuality, facts: Facts, found: Loss, outcome: RuleResult, *, level: bool = False) -> JudgedRule:
    needs = None
    if outcome is RuleResult.INCONCLUSIVE:
        needs = f"about {found.needed} samples" if found.needed else "another budget: the value is at this one"
    return _with(
        _row(rule, head.head, f"{WORDS[outcome]} ({found.text})", needs, level=level),
        outcome=outcome,
        value=found.value,
        low=found.low,
        high=found.high,
        n=found.n,
        alpha=facts.alpha,
        unit="share" if head.metric in ("accuracy", "top5", "binary") else head.metric,
    )


def _with(row: JudgedRule, **changes: object) -> JudgedRule:
    return msgspec.structs.replace(row, **changes)


def _row(rule: Rule, head: str, why: str, needs: str | None, *, level: bool = False) -> JudgedRule:
    part = f", {rule.slice} slice" if rule.slice == "worst" else f", slice {rule.slice}" if rule.slice else ""
    over = rule.over or DENSE
    if level:
        text, budget = (
            f"{head} of {rule.arm} reaches {rule.at_least}",
            float(rule.at_least) if isinstance(rule.at_least, float | int) else None,
        )
    else:
        text, budget = f"{head} of {rule.arm} loses at most {rule.drop_at_most} against {over}{part}", rule.drop_at_most
    return JudgedRule(
        id=f"quality:{rule.arm if level else f'{rule.arm}/{over}'}:{head}" + (f":{rule.slice}" if rule.slice and not level else ""),
        kind="quality",
        outcome=RuleResult.INCONCLUSIVE,
        text=text,
        why=why,
        budget=budget,
        needs=needs,
    )
