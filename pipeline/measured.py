"""What a run measured, as the verdict asks for it: its protocol `Statistics` over the files of samples and predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.errors import InputError, TamperedError
from pipeline.records.artifact import Artifact
from pipeline.records.evidence import Evidence
from pipeline.records.io import sha256_file
from pipeline.records.measurement import Estimate
from pipeline.verdict.facts import Loss

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.latency.samples import Samples
    from pipeline.quality.compare import Drop
    from pipeline.quality.predictions import Predictions


class Measured:
    """Statistics of a run's samples and predictions; reads each file once.

    Args:
        evidence: The run's records, with the folders that hold the files.
        alpha: Error probability of each bound.
        samples: Samples that stand before the judge before they are saved; those of the records when absent.
    """

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

        return self._estimate(latency.ratio, arm, over, shape=shape, metric=metric, quantity=quantile)

    def absolute(self, arm: str, shape: str, metric: str, quantile: str) -> Estimate | str:
        """Latency of one arm in ms."""
        from pipeline import latency

        return self._estimate(latency.absolute, arm, shape=shape, metric=metric, quantity=quantile)

    def between_builds(self, pairs: list[tuple[str, str]], shape: str, metric: str, quantile: str) -> Estimate | str:
        """Ratio over several builds, their spread in the interval."""
        from pipeline import latency

        return self._estimate(latency.between_builds, pairs, shape=shape, metric=metric, quantity=quantile)

    def _estimate(self, statistic: Callable[..., object], *of: object, **where: str) -> Estimate | str:
        """A statistic of the samples, or in words why there is none."""
        if isinstance(self.samples, str):
            return self.samples
        found = statistic(self.samples, *of, **where, alpha=self.alpha)
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
