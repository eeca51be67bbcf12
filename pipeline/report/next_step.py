"""The last line of a report: the one thing to do next, taken from the record that matters most."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.commands import again, names
from pipeline.records.evidence import Evidence
from pipeline.records.verdict import JudgedRule, RuleResult


def next_step(evidence: Evidence) -> str:
    """What to do next: the failed stage's hint, a broken rule, an undecided one, budgets where there are none, or release."""
    return next(text for choice in _CHOICES if (text := choice(evidence)))


def _failed_stage(evidence: Evidence) -> str:
    failed = [stage for stage in (evidence.run.stages if evidence.run else ()) if stage.status == "failed"]
    if not failed:
        return ""
    return f"mend stage {failed[0].stage} and run again: {failed[0].reason}; then: {again(evidence)}"


def _cut_short(evidence: Evidence) -> str:
    run = evidence.run
    if run is None or (evidence.gate is not None and evidence.gate.rules):
        return ""
    if run.result == "running":
        by = f" (process {run.process.pid} on {run.process.host})" if run.process else ""
        return f"wait until it ends{by}, then: sparsegate report {_run(evidence)}"
    if run.result == "killed" or any(stage.status == "skipped" for stage in run.stages):
        return f"what it had finished is kept, the same command goes on from there: {again(evidence)}"
    return f"go on with the stages that are left: sparsegate run {names(evidence)['recipe']}" if "--until" in run.limits else ""


def _failing_rule(evidence: Evidence) -> str:
    rule = _first(evidence, RuleResult.FAIL)
    return f"do not release: {rule.text}: {rule.why}" if rule else ""


UNDECIDED: dict[str, str] = {
    "latency": "measure longer, on a machine that does nothing else: sparsegate run {recipe} --set measure.seconds=60",
    "quality": "give the test split more samples, or the budget more room: {recipe_file}",
    "rungs": "see what the builds' logs do not tell: sparsegate report {run} --format md",
}
"""What may decide an undecided rule, by its kind."""


def _open_rule(evidence: Evidence) -> str:
    rule = _first(evidence, RuleResult.INCONCLUSIVE)
    if rule is None:
        return ""
    known = UNDECIDED.get(rule.kind)
    return known.format(**names(evidence)) if known else f"decide {rule.text}: {rule.why}"


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
    return names(evidence)["run"]


_CHOICES: tuple[Callable[[Evidence], str], ...] = (_failed_stage, _cut_short, _failing_rule, _open_rule, _ungated, _release)
