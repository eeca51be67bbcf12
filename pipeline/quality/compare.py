"""Loss of quality between two models on the same samples, and the level of one, with intervals that a budget is held against."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.errors import InputError
from pipeline.quality import paired
from pipeline.quality.metrics import metric_named

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

LEAST_SAMPLES = 10
"""Below this a deviation estimated from paired differences means little; right-or-wrong scores need no such floor."""
REPLICATES = 1999
SEED = 20_26
RESAMPLED_UP_TO = 20_000
"""Samples up to which the bootstrap is run; beyond it the normal law serves."""
POWER = 0.8


class Drop(NamedTuple):
    """A loss (positive: worse), each bound at the error probability asked for."""

    value: float
    low: float | None
    high: float | None
    n: int
    method: str
    worse: int
    """Samples that only the reference gets right; for errors, samples whose error grew."""
    better: int
    spread: float
    """Standard deviation of the paired difference of one sample."""


def loss(reference: Scores, candidate: Scores, metric: str, alpha: float, budget: float | None = None) -> Drop:
    """How much worse the candidate is than the reference on the same samples.

    Right-or-wrong metrics: the exact paired test of `paired`, in shares (0.01 is one point). Others: bootstrap-t of the paired
    differences, in the metric's unit.

    Args:
        reference: Score per sample [n].
        candidate: Score per sample, same order [n].
        metric: Name in `METRICS`.
        alpha: Error probability of each bound.
        budget: Loss that the bounds are to be held against. An exact test is not quite monotone in the loss, so a bound that the
            test at the budget itself does not confirm is moved to the budget, and decides nothing.

    Raises:
        InputError: the two were not scored on the same number of samples, or on none.
    """
    if reference.shape != candidate.shape or not len(reference):
        raise InputError(
            f"paired comparison needs the same samples: {len(reference)} and {len(candidate)} were scored",
            hint="evaluate both on one split",
        )
    row = metric_named(metric)
    difference = reference - candidate if row.higher_is_better else candidate - reference
    n, worse, better = len(difference), int((difference > 0).sum()), int((difference < 0).sum())
    spread = float(difference.std())
    value = float(difference.mean())
    if row.binary:
        low, high = paired.lower_bound(worse, better, n, alpha), paired.upper_bound(worse, better, n, alpha)
        if budget is not None and high < budget and paired.p_below(worse, better, n, budget) > alpha:
            high = budget
        if budget is not None and low > budget and paired.p_above(worse, better, n, budget) > alpha:
            low = budget
        return Drop(value, low, high, n, "exact paired test", worse, better, spread)
    bounds = bootstrap_t(difference, alpha) or (None, None)
    return Drop(value, bounds[0], bounds[1], n, "paired bootstrap-t", worse, better, spread)


def p_above(drop: Drop, metric: str, budget: float) -> float:
    """p-value against "the loss is at most the budget", for Holm's correction over slices."""
    if metric_named(metric).binary:
        return paired.p_above(drop.worse, drop.better, drop.n, budget)
    if drop.spread == 0.0:
        return 0.0 if drop.value > budget else 1.0
    if drop.n < LEAST_SAMPLES:
        return 1.0
    return 1 - NormalDist().cdf((drop.value - budget) / (drop.spread / math.sqrt(drop.n)))


def level(scores: Scores, metric: str, alpha: float) -> Drop:
    """Mean score of one model with bounds: Clopper & Pearson's for right-or-wrong metrics, else bootstrap-t."""
    n = len(scores)
    if not n:
        raise InputError("no samples were scored", hint="evaluate on a split that is not empty")
    value, spread = float(scores.mean()), float(scores.std())
    if metric_named(metric).binary:
        right = int(scores.sum())
        low, high = paired.beta_bound(right, n, alpha, upper=False), paired.beta_bound(right, n, alpha, upper=True)
        return Drop(value, low, high, n, "exact binomial", n - right, right, spread)
    bounds = bootstrap_t(scores, alpha) or (None, None)
    return Drop(value, bounds[0], bounds[1], n, "bootstrap-t", 0, 0, spread)


def bootstrap_t(values: Scores, alpha: float) -> tuple[float, float] | None:
    """Studentised bootstrap bounds of a mean (Efron & Tibshirani 1993, 12.5); None with too few samples."""
    n, mean, deviation = len(values), float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if n < LEAST_SAMPLES:
        return None
    if deviation == 0.0:
        return mean, mean
    error = deviation / math.sqrt(n)
    if n > RESAMPLED_UP_TO:
        reach = NormalDist().inv_cdf(1 - alpha) * error
        return mean - reach, mean + reach
    low, high = np.quantile(_students(values), [alpha, 1 - alpha])
    return mean - float(high) * error, mean - float(low) * error


def _students(values: Scores) -> Scores:
    """Student's statistic of every bootstrap replicate [REPLICATES], a few replicates at a time to bound memory."""
    n, mean = len(values), values.mean()
    drawn = np.random.default_rng(SEED)
    at_once = max(1, 1_000_000 // n)
    found = []
    for start in range(0, REPLICATES, at_once):
        samples = values[drawn.integers(0, n, (min(at_once, REPLICATES - start), n))]
        spread = samples.std(axis=1, ddof=1)
        gap = samples.mean(axis=1) - mean
        found.append(np.divide(gap * math.sqrt(n), spread, out=np.zeros_like(gap), where=spread > 0))
    return np.concatenate(found)


def needed(drop: Drop, budget: float, alpha: float) -> int | None:
    """Samples with which a loss of this size and spread would be told from the budget in 8 of 10 trials; None where no number would.

    A spread of zero is taken for what it may be: up to ln(1 / alpha) differing samples in n may still be unseen.
    """
    gap = abs(budget - drop.value)
    if gap == 0.0:
        return None
    variance = max(drop.spread**2, math.log(1 / alpha) / drop.n if drop.method == "exact paired test" else 0.0)
    z = NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf(POWER)
    by_variance = math.ceil(z * z * variance / (gap * gap))
    # however well they agree, n samples without a difference exclude no loss below 1 - alpha^(1/n)
    by_silence = math.ceil(math.log(alpha) / math.log1p(-budget)) if 0 < budget < 1 and drop.method == "exact paired test" else 0
    return max(by_variance, by_silence)
