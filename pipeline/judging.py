"""Joins what the verdict needs: records, latency statistics of the samples, quality comparisons of the predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pipeline.errors import InputError, TamperedError
from pipeline.records.artifact import Artifact
from pipeline.records.baseline import Baseline
from pipeline.records.evidence import Evidence
from pipeline.records.io import sha256_file
from pipeline.records.measurement import Estimate
from pipeline.records.verdict import Verdict
from pipeline.verdict.facts import Loss

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.latency.samples import Samples
    from pipeline.quality.compare import Drop
    from pipeline.quality.predictions import Predictions


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
    facts = verdict.Facts(evidence=evidence, statistics=Joined(evidence, alpha), alpha=alpha, baseline=baseline)
    budgets = verdict.parse(rules)
    # within a run, and when a run is judged again later, the same records stand before the judge: not run.json, nor an older verdict
    evidence = replace(evidence, run=None, gate=None)
    return verdict.judge(facts, budgets, ladder=ladder.build(evidence), findings=diagnosis.diagnose(evidence))


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
        facts = verdict.Facts(evidence=evidence, statistics=Joined(evidence, alpha, samples), alpha=alpha)
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
    new = baseline.made(name, arm, evidence, verdict, Joined(evidence, verdict.alpha or 0.05))
    notes = [f"{len(new.latency)} latency figures, {len(new.quality)} quality figures, {len(new.sizes)} sizes"]
    if path.exists() and not anew:
        new, notes = baseline.ratchet(baseline.read(path), new, evidence)
    io.write(path, new)
    return notes


class Joined:
    """Implements the verdict's `Statistics` over the run's samples and predictions; reads each file once."""

    def __init__(self, evidence: Evidence, alpha: float, samples: Samples | None = None) -> None:
        self.evidence = evidence
        self.alpha = alpha
        self._given = samples
        self._predictions: dict[str, Predictions | str] = {}

    @cached_property
    def samples(self) -> Samples | str:
        """All latency samples, or why there are none."""
        if self._given is not None:
            return self._given
        measured = self.evidence.measure
        if measured is None or measured.samples is None:
            return "no latency samples were kept"
        from pipeline.latency import Samples

        return Samples.load(_verified(self.evidence.file("measure", measured.samples), measured.samples))

    def ratio(self, arm: str, over: str, shape: str, metric: str, quantile: str) -> Estimate | str:
        """Latency of one arm over another, paired by round."""
        from pipeline import latency

        if isinstance(self.samples, str):
            return self.samples
        found = latency.ratio(self.samples, arm, over, shape=shape, metric=metric, quantity=quantile, alpha=self.alpha)
        return found if isinstance(found, Estimate) else str(found)

    def absolute(self, arm: str, shape: str, metric: str, quantile: str) -> Estimate | str:
        """Latency of one arm in ms."""
        from pipeline import latency

        if isinstance(self.samples, str):
            return self.samples
        found = latency.absolute(self.samples, arm, shape=shape, metric=metric, quantity=quantile, alpha=self.alpha)
        return found if isinstance(found, Estimate) else str(found)

    def between_builds(self, pairs: list[tuple[str, str]], shape: str, metric: str, quantile: str) -> Estimate | str:
        """Ratio over several builds, their spread in the interval."""
        from pipeline import latency

        if isinstance(self.samples, str):
            return self.samples
        found = latency.between_builds(self.samples, pairs, shape=shape, metric=metric, quantity=quantile, alpha=self.alpha)
        return found if isinstance(found, Estimate) else str(found)

    def unsettled(self, shape: str) -> list[str]:
        """Arms whose warm-up never became steady."""
        facts = None if isinstance(self.samples, str) else self.samples.sampling.get(shape)
        return [arm for arm, steady in facts.settled.items() if not steady] if facts else []

    def arms(self, shape: str) -> list[str]:
        """Arms that were sampled at a shape."""
        present = [] if isinstance(self.samples, str) else self.samples.present()
        return list(dict.fromkeys(arm for arm, at, _ in present if at == shape))

    def metrics(self, arm: str, shape: str) -> list[str]:
        """Latency metrics that were sampled."""
        present = [] if isinstance(self.samples, str) else self.samples.present()
        return [metric for name, at, metric in present if (name, at) == (arm, shape)]

    def loss(self, arm: str, over: str, head: str, budget: float) -> Loss | str:
        """Loss of quality of an arm against another on the same samples."""
        from pipeline import quality

        both = self._both(arm, over, head)
        if isinstance(both, str):
            return both
        new, old = both
        metric = new.heads[head]
        found = quality.loss(old.scores[head], new.scores[head], metric, self.alpha, budget)
        changed = int((old.answers[head] != new.answers[head]).sum()) if head in old.answers and head in new.answers else None
        return _loss(found, budget, self.alpha, more="" if changed is None else f"; {changed} answers differ")

    def level(self, arm: str, head: str, budget: float) -> Loss | str:
        """Quality of an arm."""
        from pipeline import quality
        from pipeline.quality.compare import needed

        found = self._predicted(arm)
        if isinstance(found, str):
            return found
        if head not in found.scores:
            return f"the predictions of {arm} have no head {head!r}"
        level = quality.level(found.scores[head], found.heads[head], self.alpha)
        return Loss(
            value=level.value,
            low=level.low,
            high=level.high,
            n=level.n,
            text=f"{level.n} samples; {level.method}",
            needed=needed(level, budget, self.alpha),
        )

    def slices(self, arm: str, over: str, head: str, wanted: str, budget: float) -> list[Loss] | str:
        """Losses by slice, largest first."""
        import numpy as np

        from pipeline import quality

        both = self._both(arm, over, head)
        if isinstance(both, str):
            return both
        new, old = both
        members = {
            f"{axis}={label}": labels == label
            for axis, labels in new.slices.items()
            for label in np.unique(labels)
            if wanted in ("worst", f"{axis}={label}")
        }
        if not members:
            known = ", ".join(new.slices) or "none"
            return f"no slice is called {wanted!r} (axes: {known})" if wanted != "worst" else f"the samples of {arm} have no slices"
        rows = quality.worst_slice(old.scores[head], new.scores[head], members, new.heads[head], budget=budget, alpha=self.alpha)
        return [_loss(row.drop, budget, self.alpha, name=row.name, over=row.over) for row in rows]

    def _both(self, arm: str, over: str, head: str) -> tuple[Predictions, Predictions] | str:
        new, old = self._predicted(arm), self._predicted(over)
        if isinstance(new, str):
            return new
        if isinstance(old, str):
            return old
        if head not in new.scores or head not in old.scores or new.heads[head] != old.heads[head]:
            return f"{arm} and {over} were not scored alike on {head!r}"
        if len(new.scores[head]) != len(old.scores[head]) or not _same_slices(new, old):
            return f"{arm} and {over} were not evaluated on the same samples"
        return new, old

    def _predicted(self, arm: str) -> Predictions | str:
        if arm not in self._predictions:
            self._predictions[arm] = self._read_predictions(arm)
        return self._predictions[arm]

    def _read_predictions(self, arm: str) -> Predictions | str:
        from pipeline.quality import Predictions

        measured = self.evidence.measure
        found = measured.quality.get(arm, []) if measured else []
        one = next((q for q in found if q.split == "test"), found[0] if found else None)
        if one is None or one.predictions is None:
            return f"no predictions of {arm} were kept"
        return Predictions.load(_verified(self.evidence.file("measure", one.predictions), one.predictions))


def _verified(path: Path, artifact: Artifact) -> Path:
    if not path.is_file():
        raise InputError("the file is gone that the run's record names", where=str(path), hint="run the measure stage again")
    if sha256_file(path) != artifact.sha256:
        raise TamperedError(
            "the file no longer matches the digest in the run's record", where=str(path), hint="run the measure stage again"
        )
    return path


def _same_slices(left: Predictions, right: Predictions) -> bool:
    """Same axes and labels in the same order: as far as can be told, the same samples."""
    return set(left.slices) == set(right.slices) and all((left.slices[axis] == right.slices[axis]).all() for axis in left.slices)


def _loss(drop: Drop, budget: float, alpha: float, *, more: str = "", name: str = "", over: bool = False) -> Loss:
    from pipeline.quality.compare import needed

    text = f"{drop.worse} of {drop.n} samples got worse, {drop.better} better; {drop.method}{more}"
    return Loss(
        value=drop.value, low=drop.low, high=drop.high, n=drop.n, text=text, needed=needed(drop, budget, alpha), name=name, over=over
    )
