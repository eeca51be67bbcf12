"""The difference of two proportions on the same samples: right before and wrong after, less the reverse.

With b samples that only the first model gets right, c that only the second does, and n in all, the loss is (b - c) / n.
McNemar's test asks whether it is zero; a budget asks whether it is below d > 0, and the models agree on nearly all samples, so
b and c are small. The test here orders outcomes by Tango's score statistic (Statistics in Medicine 17, 1998) and, where b and c
are small, takes its exact null distribution, the largest over the nuisance parameter within its confidence set (Hsueh, Liu &
Chen, Biometrics 57, 2001; Berger & Boos, JASA 89, 1994). Where they are large the score's normal law serves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXACT_UP_TO = 80
"""Expected or observed discordant samples up to which the exact distribution is used."""
NUISANCE_ERROR = 2e-4
"""Probability that the nuisance parameter's confidence set misses it; added to the p-value."""
NUISANCE_POINTS = 24
BISECTIONS = 18
"""Steps to a bound: within 2 / 2**18 = 0.000008."""


def p_below(b: int, c: int, n: int, budget: float) -> float:
    """p-value against "the loss is at least the budget": small values say that it is below.

    Args:
        b: Samples that got worse.
        c: Samples that got better.
        n: All samples, at least 1.
        budget: Loss, in (-1, 1).
    """
    if b + c <= EXACT_UP_TO and n * abs(budget) <= EXACT_UP_TO:
        return _exact(b, c, n, budget)
    return NormalDist().cdf(float(score_statistic(np.array(b), np.array(c), n, budget)))


def p_above(b: int, c: int, n: int, budget: float) -> float:
    """p-value against "the loss is at most the budget": small values say that it is above."""
    return p_below(c, b, n, -budget)


@lru_cache(maxsize=4096)
def upper_bound(b: int, c: int, n: int, alpha: float) -> float:
    """Largest loss that a test at level `alpha` does not exclude."""
    low, high = (b - c) / n, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if p_below(b, c, n, middle) > alpha else (low, middle)
    return high


def lower_bound(b: int, c: int, n: int, alpha: float) -> float:
    """Least loss that a test at level `alpha` does not exclude."""
    return -upper_bound(c, b, n, alpha)


def score_statistic(b: NDArray[np.int64], c: NDArray[np.int64], n: int, loss: float) -> NDArray[np.float64]:
    """Tango's z for the hypothesis that the loss is `loss`: observed less expected, over its constrained deviation.

    With q the probability of "only the second is right", its constrained estimate solves
    2n q^2 - (b + c - (2n - b + c) loss) q - c loss (1 - loss) = 0.
    """
    linear = (2 * n - b + c) * loss - b - c
    q = (np.sqrt(np.maximum(linear * linear + 8 * n * c * loss * (1 - loss), 0.0)) - linear) / (4 * n)
    variance = n * np.maximum(2 * q + loss - loss * loss, 0.0)
    gap = b - c - n * loss
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gap / np.sqrt(variance)
    return np.asarray(np.where(variance > 0, z, np.sign(gap) * 1e9), np.float64)


def _exact(b: int, c: int, n: int, loss: float) -> float:
    """Largest probability, over the nuisance parameter, of an outcome that speaks as strongly against the hypothesis."""
    least, most = max(0.0, -loss), (1 - loss) / 2
    # a confidence set for q = P(only the second is right) from c of n, within the possible values
    low = max(least, beta_bound(c, n, NUISANCE_ERROR / 2, upper=False))
    high = min(most, beta_bound(c, n, NUISANCE_ERROR / 2, upper=True))
    if low > high:
        low = high = min(max(low, least), most)
    q = np.linspace(low, high, NUISANCE_POINTS)
    reach = _reach(n, float(q.max()) + max(loss, 0.0))
    counts = np.arange(min(n, reach) + 1)
    bs, cs = np.meshgrid(counts, counts, indexing="ij")
    possible = bs + cs <= n
    bs, cs = bs[possible], cs[possible]
    observed = float(score_statistic(np.array(b), np.array(c), n, loss))
    extreme = score_statistic(bs, cs, n, loss) <= observed + 1e-9
    return min(1.0, float(_probability(bs[extreme], cs[extreme], n, q, loss).max()) + NUISANCE_ERROR)


def _reach(n: int, share: float) -> int:
    """Counts beyond this have no probability worth adding."""
    return math.ceil(n * share + 7 * math.sqrt(n * share) + 12)


def _probability(b: NDArray[np.int64], c: NDArray[np.int64], n: int, q: NDArray[np.float64], loss: float) -> NDArray[np.float64]:
    """Trinomial probability of a set of outcomes [k] at every q [m]: [m]."""
    factorials = _log_factorials(n)
    rest = n - b - c
    coefficient = factorials[n] - factorials[b] - factorials[c] - factorials[rest]
    with np.errstate(divide="ignore"):
        log_b, log_c, log_rest = (np.log(np.maximum(p, 0.0))[:, None] for p in (q + loss, q, 1 - 2 * q - loss))
    exponent = coefficient + _times(b, log_b) + _times(c, log_c) + _times(rest, log_rest)
    return np.asarray(np.exp(exponent).sum(axis=1))


def _times(count: NDArray[np.int64], log: NDArray[np.float64]) -> NDArray[np.float64]:
    """Count * log, with 0 * -inf = 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(count == 0, 0.0, count * log))


@lru_cache(maxsize=32)
def _log_factorials(n: int) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


@lru_cache(maxsize=4096)
def beta_bound(successes: int, n: int, alpha: float, *, upper: bool) -> float:
    """Clopper & Pearson's bound for a proportion, each at error probability `alpha`."""
    if upper:
        return 1.0 - beta_bound(n - successes, n, alpha, upper=False)
    if successes == 0:
        return 0.0
    low, high = 0.0, successes / n
    tail = np.arange(successes, n + 1)
    factorials = _log_factorials(n)
    coefficient = factorials[n] - factorials[tail] - factorials[n - tail]
    for _ in range(50):
        middle = (low + high) / 2
        probability = float(np.exp(coefficient + tail * math.log(middle) + (n - tail) * math.log1p(-middle)).sum())
        low, high = (low, middle) if probability > alpha else (middle, high)
    return low
