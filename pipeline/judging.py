"""Joins the records of a run, the statistics of what it measured, and the budgets that the verdict holds against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pipeline.alive import as_it_stands
from pipeline.commands import filled, names
from pipeline.errors import InputError
from pipeline.measured import Measured
from pipeline.records.baseline import Baseline
from pipeline.records.evidence import Evidence, read_evidence
from pipeline.records.verdict import RuleResult, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.latency.samples import Samples


def judge(evidence: Evidence, rules: Sequence[Mapping[str, Any]], alpha: float, baseline: Baseline | None = None) -> Verdict:
    """Hold budgets against the records of a run; the same records and budgets give the same verdict, byte for byte.

    Args:
        evidence: Records, with the folder that holds samples and predictions.
        rules: The `rules` of a recipe's gate section, as plain mappings.
        alpha: Error probability of each rule, below 0.5.
        baseline: For rules with `over: baseline`.

    Raises:
        InputError: a rule that cannot be used.
        TamperedError: samples or predictions that no longer match their digest.
    """
    from pipeline import verdict
    from pipeline.verdict import diagnosis, ladder

    if not 0 < alpha < 0.5:
        raise InputError(f"alpha must lie between 0 and 0.5, not {alpha:g}", where="gate.alpha", hint="0.05 is customary")
    facts = verdict.Facts(evidence=evidence, statistics=Measured(evidence, alpha), alpha=alpha, baseline=baseline)
    budgets = verdict.parse(rules)
    # within a run, and when a run is judged again later, the same records stand before the judge: not run.json, nor an older verdict
    evidence = replace(evidence, run=None, gate=None)
    return verdict.judge(facts, budgets, ladder=ladder.build(evidence), findings=diagnosis.diagnose(evidence))


def judged(folder: Path) -> Evidence:
    """As `api.judged`."""
    from pipeline.verdict import bound, diagnosis, ladder

    evidence = read_evidence(folder)
    evidence = replace(evidence, run=as_it_stands(evidence.run, folder)) if evidence.run else evidence
    called = names(evidence)["run"]
    verdict = evidence.gate or Verdict(outcome=RuleResult.INCONCLUSIVE, rules=[], notes=["the gate has not judged this run"])
    return replace(
        evidence,
        gate=replace(
            verdict,
            rules=[replace(rule, needs=filled(rule.needs, run=called)) if rule.needs else rule for rule in verdict.rules],
            ladder=verdict.ladder or ladder.build(evidence),
            bounds=verdict.bounds or bound.bounds(evidence),
            findings=diagnosis.with_commands(verdict.findings, evidence) if verdict.findings else diagnosis.diagnose(evidence),
        ),
    )


def decided(rules: Sequence[Mapping[str, Any]], evidence: Evidence, alpha: float) -> Callable[[Samples], bool]:
    """For `latency.sample`: are all latency rules decided by these samples?

    Args:
        rules: The gate's rules.
        evidence: The records so far; its `measure` need not exist.
        alpha: The gate's.
    """
    from pipeline import verdict
    from pipeline.verdict.latency_rule import is_decided

    wanted = [rule for rule in verdict.parse(rules) if rule.kind == "latency"]
    unknown_here = any(rule.over == verdict.BASELINE for rule in wanted)

    def enough(samples: Samples) -> bool:
        if unknown_here:  # the baseline is named when the gate is run: keep on sampling for it
            return False
        facts = verdict.Facts(evidence=evidence, statistics=Measured(evidence, alpha, samples), alpha=alpha)
        concerned = [(rule, shape) for shape in samples.shapes for rule in wanted if rule.batch is None or shape == f"batch={rule.batch}"]
        return bool(concerned) and all(is_decided(rule, shape, facts) for rule, shape in concerned)

    return enough


def budgets_of(evidence: Evidence) -> tuple[list[Mapping[str, Any]], float]:
    """The rules and alpha of the recipe that a run was made from.

    Raises:
        InputError: the run's record does not hold them.
    """
    section = evidence.run.sections.get("gate") if evidence.run else None
    if not isinstance(section, dict) or not isinstance(section.get("rules"), list) or not isinstance(section.get("alpha"), int | float):
        raise InputError("the run's record holds no gate section", where=str(evidence.folder), hint="give the budgets with --recipe")
    return section["rules"], float(section["alpha"])


def save_baseline(evidence: Evidence, verdict: Verdict, path: Path, *, arm: str, anew: bool) -> list[str]:
    """Write a baseline, or tighten the stored one; returns what changed."""
    from pipeline.records import io
    from pipeline.verdict import baseline

    name = baseline.checked_name(path.stem)
    new = baseline.made(name, arm, evidence, verdict, Measured(evidence, verdict.alpha or 0.05))
    notes = [f"{len(new.latency)} latency figures, {len(new.quality)} quality figures, {len(new.sizes)} sizes"]
    if path.exists() and not anew:
        new, notes = baseline.ratchet(baseline.read(path), new, evidence)
    io.write(path, new)
    return notes
