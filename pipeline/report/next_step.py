"""The last line of a report: the one thing to do next, taken from the record that matters most."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.records.evidence import Evidence
from pipeline.records.verdict import JudgedRule, RuleResult


def next_step(evidence: Evidence) -> str:
    """What to do next: the failed stage's hint, a broken rule, an undecided one, budgets where there are none, or release."""
    return next(text for choice in _CHOICES if (text := choice(evidence)))


def _failed_stage(evidence: Evidence) -> str:
    failed = [stage for stage in (evidence.run.stages if evidence.run else ()) if stage.status == "failed"]
    return f"mend stage {failed[0].stage} and run again: {failed[0].error or 'no reason was recorded'}" if failed else ""


def _failing_rule(evidence: Evidence) -> str:
    rule = _first(evidence, RuleResult.FAIL)
    return f"do not release: {rule.text}: {rule.why}" if rule else ""


UNDECIDED: dict[str, str] = {
    "latency": "measure longer, on a machine that does nothing else: sparsegate run {recipe} --set measure.seconds=60",
    "quality": "give the test split more samples, or the budget more room: {recipe}",
    "rungs": "see what the builds' logs do not tell: sparsegate report {run} --format md",
}
"""What may decide an undecided rule, by its kind."""


def _open_rule(evidence: Evidence) -> str:
    rule = _first(evidence, RuleResult.INCONCLUSIVE)
    if rule is None:
        return ""
    recipe = evidence.run.recipe_path if evidence.run else "RECIPE"
    return UNDECIDED.get(rule.kind, f"decide {rule.text}: {rule.why}").format(run=_run(evidence), recipe=recipe)


def _first(evidence: Evidence, outcome: RuleResult) -> JudgedRule | None:
    return next((rule for rule in (evidence.gate.rules if evidence.gate else ()) if rule.outcome is outcome), None)


def _ungated(evidence: Evidence) -> str:
    judged = evidence.gate is not None and bool(evidence.gate.rules)
    return "" if judged else f"set budgets in the recipe's gate section, then: sparsegate gate {_run(evidence)}"


NO_SPARSE_KERNELS = "SG520"
"""The finding that stands between a run and any claim about sparse tactics: it comes before all others here."""


def _release(evidence: Evidence) -> str:
    findings = sorted(evidence.gate.findings if evidence.gate else [], key=lambda finding: finding.id != NO_SPARSE_KERNELS)
    look = f"; then {findings[0].next}" if findings else ""
    return f"the budgets hold: release, or keep as baseline with sparsegate gate {_run(evidence)} --save-baseline NAME{look}"


def _run(evidence: Evidence) -> str:
    return f"{evidence.run.recipe}/{evidence.run.id}" if evidence.run else "RUN"


_CHOICES: tuple[Callable[[Evidence], str], ...] = (_failed_stage, _failing_rule, _open_rule, _ungated, _release)
