"""Budgets of bytes and of energy."""

from __future__ import annotations

from pipeline.records.measurement import Estimate
from pipeline.records.verdict import JudgedRule, RuleResult
from pipeline.verdict import comparable
from pipeline.verdict.budget import BASELINE, Rule
from pipeline.verdict.conditions import computes_something_else
from pipeline.verdict.decision import WORDS, at_most
from pipeline.verdict.facts import Facts

TOLERANCE = 1e-6
"""A baseline's confidence is rounded."""
COUNTERLESS = frozenset({"onnxruntime"})
"""Backends that count energy on no device: a processor's counters need its administrator."""
NEEDS_COUNTER = "leave the energy rule out here, or build with TensorRT for a device that counts its energy"


def size(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """A file's size is a fact: it has no interval."""
    assert rule.at_most is not None and rule.size is not None
    found = _bytes(facts, rule.arm, rule.size)
    if found is None:
        known = sorted({s.name for s in facts.evidence.measure.sizes if s.arm == rule.arm}) if facts.evidence.measure else []
        return [
            _size_row(
                rule,
                RuleResult.INCONCLUSIVE,
                f"no size {rule.size!r} of {rule.arm} was recorded",
                f"known sizes: {', '.join(known) or 'none'}",
            )
        ]
    if rule.over is None:
        value, text = float(found), f"{found} bytes"
    else:
        other = facts.baseline.sizes.get(rule.size) if rule.over == BASELINE and facts.baseline else _bytes(facts, rule.over, rule.size)
        if not other:
            needs = "gate --baseline NAME" if rule.over == BASELINE else f"measure the arm {rule.over} too"
            return [_size_row(rule, RuleResult.INCONCLUSIVE, f"no size {rule.size!r} of {rule.over} was recorded", needs)]
        value, text = found / other, f"{found} of {other} bytes"
    return [_size_row(rule, RuleResult.PASS if value <= rule.at_most else RuleResult.FAIL, text, None, value)]


def _bytes(facts: Facts, arm: str, name: str) -> int | None:
    sizes = facts.evidence.measure.sizes if facts.evidence.measure else []
    return next((one.bytes for one in sizes if (one.arm, one.name) == (arm, name)), None)


def _size_row(rule: Rule, outcome: RuleResult, why: str, needs: str | None, value: float | None = None) -> JudgedRule:
    of = f"{rule.arm}/{rule.over}" if rule.over else rule.arm
    return JudgedRule(
        id=f"size:{of}:{rule.size}",
        kind="size",
        outcome=outcome,
        text=f"size {rule.size} of {rule.arm} at most {rule.at_most:g}" + (f" of {rule.over}'s" if rule.over else " bytes"),
        why=why,
        needs=needs,
        value=value,
        budget=rule.at_most,
        unit="ratio" if rule.over else "bytes",
    )


def energy(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """Energy per inference, where something measured it."""
    measured = facts.evidence.measure
    entries = [e for e in measured.energy if e.arm == rule.arm] if measured else []
    shapes = [f"batch={rule.batch}"] if rule.batch is not None else list(dict.fromkeys(e.shape for e in entries))
    return [_energy(rule, shape, facts) for shape in shapes] or [_energy(rule, "any shape", facts)]


def _energy(rule: Rule, shape: str, facts: Facts) -> JudgedRule:
    assert rule.at_most is not None
    found = _millijoules(facts, rule.arm, shape)
    other: Estimate | None = None
    if rule.over == BASELINE:
        other = facts.baseline.energy.get(shape) if facts.baseline else None
        measured = facts.evidence.measure
        different = comparable.differences(measured, facts.baseline) if facts.baseline and measured else []
        if different:
            return _energy_row(
                rule, shape, "not comparable with the baseline: " + "; ".join(different), "measure under the baseline's conditions"
            )
    elif rule.over is not None:
        other = _millijoules(facts, rule.over, shape)
    if found is None or (rule.over is not None and other is None):
        return _energy_row(rule, shape, *_unmetered(facts, rule.arm if found is None else str(rule.over), shape))
    unfit = _unfit(rule, facts, [found, *([other] if other is not None else [])])
    if unfit is not None:
        return _energy_row(rule, shape, *unfit)
    estimate = comparable.ratio_of(found, other) if other is not None else found
    outcome = at_most(estimate.low, estimate.high, rule.at_most)
    return _energy_row(rule, shape, WORDS[outcome], None, outcome, estimate, facts.alpha)


def _unmetered(facts: Facts, arm: str, shape: str) -> tuple[str, str]:
    """Why there is no energy, and what would help."""
    why = f"no energy of {arm} was measured at {shape}"
    conditions = facts.evidence.measure.conditions if facts.evidence.measure else None
    if arm != BASELINE and conditions is not None and (conditions.backend in COUNTERLESS or "energy" in conditions.unobserved):
        return f"{why}: the backend {conditions.backend} on {conditions.device} counts none", NEEDS_COUNTER
    return why, "energy is read from the device's own counter, in the time that measure.energy_seconds gives it: see what was not observed"


def _unfit(rule: Rule, facts: Facts, estimates: list[Estimate]) -> tuple[str, str] | None:
    """Why recorded energies must not be judged, and what would help."""
    measured = facts.evidence.measure
    if measured is not None and measured.conditions.simulated is not None:
        return f"the energy is not a running engine's: {measured.conditions.simulated}", "measure on the target"
    another = computes_something_else([arm for arm in (rule.arm, rule.over) if arm], measured.conditions) if measured is not None else None
    if another is not None:
        return another
    error = max((1 - estimate.confidence) / 2 for estimate in estimates)
    if error > facts.alpha + TOLERANCE:
        return (
            f"its interval was made for an error of {error:g} per bound, and the gate asks for {facts.alpha:g}",
            "measure again with this gate.alpha",
        )
    return None


def _millijoules(facts: Facts, arm: str, shape: str) -> Estimate | None:
    entries = facts.evidence.measure.energy if facts.evidence.measure else []
    return next((e.millijoules for e in entries if (e.arm, e.shape) == (arm, shape)), None)


def _energy_row(
    rule: Rule,
    shape: str,
    why: str,
    needs: str | None,
    outcome: RuleResult = RuleResult.INCONCLUSIVE,
    estimate: Estimate | None = None,
    alpha: float | None = None,
) -> JudgedRule:
    of = f"{rule.arm}/{rule.over}" if rule.over else rule.arm
    return JudgedRule(
        id=f"energy:{of}:{shape}",
        kind="energy",
        outcome=outcome,
        text=f"energy of {rule.arm} at {shape} at most {rule.at_most:g}" + (f" of {rule.over}'s" if rule.over else " mJ"),
        why=why,
        needs=needs,
        value=estimate.value if estimate else None,
        low=estimate.low if estimate else None,
        high=estimate.high if estimate else None,
        n=estimate.n if estimate else None,
        alpha=alpha,
        budget=rule.at_most,
        unit="ratio" if rule.over else "mJ",
    )
