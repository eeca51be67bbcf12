"""An interval for the mean of round observations that holds at every stop within a planned number of rounds.

For a random walk S_n with independent Gaussian steps of mean mu and deviation sigma, the reflection principle gives

    P(some n <= N: S_n - n mu > c sigma sqrt(N)) <= 2 (1 - Phi(c)),

so with c = Phi^-1(1 - alpha / 2) the bound  mean_n - c sigma sqrt(N) / n  lies below mu at all n <= N at once, with probability
1 - alpha. At n = N the factor is 1.96 at alpha = 0.05, where a single planned look takes 1.645: the price of peeking freely.
It is the O'Brien-Fleming shape of Lan & DeMets (1983) for looks at any time. sigma is estimated from batches of consecutive
rounds, so the normal quantile is replaced by Student's at the same tail probability (Jennison & Turnbull 2000, 3.8).
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCHES = 64
"""At most so many batches: long ones are nearly independent, and 32 to 64 of them still give a good variance."""
LEAST_ROUNDS = 8
"""Below this a deviation estimated from the rounds means little."""


class Centre(NamedTuple):
    """Means of rounds, their half-widths, and the number of independent rounds that they are worth."""

    value: NDArray[np.float64]
    half_width: NDArray[np.float64]
    effective_rounds: NDArray[np.float64]


def centre(rounds: NDArray[np.float64], planned: int, alpha: float) -> Centre:
    """Mean of round observations with a half-width valid at every stop.

    Args:
        rounds: One observation per round, in time order, [..., n] with n >= `LEAST_ROUNDS`; leading axes are separate series.
        planned: Rounds planned before sampling began.
        alpha: Error probability of each bound.
    """
    batches = batch_means(rounds)
    count = batches.shape[-1]
    inflation = autocorrelation_inflation(batches)
    error = np.sqrt(batches.var(axis=-1, ddof=1) * inflation / count)
    factor = multiplier(rounds.shape[-1], planned, count, alpha)
    return Centre(rounds.mean(axis=-1), factor * error, rounds.shape[-1] / inflation)


def batch_means(rounds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of consecutive rounds: [..., rounds] -> [..., batches], nearly equal, at least `batch_length` long."""
    n = rounds.shape[-1]
    edges = np.linspace(0, n, n // batch_length(n) + 1).round().astype(int)
    return np.asarray(np.add.reduceat(rounds, edges[:-1], axis=-1) / np.diff(edges))


def batch_length(rounds: int) -> int:
    """Smallest power of two that makes at most `BATCHES` batches: it depends on the number of rounds alone, not on their values."""
    length = 1
    while rounds // length > BATCHES:
        length *= 2
    return length


def autocorrelation_inflation(batches: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much larger the variance of the mean is than for independent batches: (1 + r) / (1 - r) for lag-1 correlation r.

    Correlations below one standard error (1 / sqrt(n)) count as none, negative ones too.
    """
    deviation = batches - batches.mean(axis=-1, keepdims=True)
    total = (deviation * deviation).sum(axis=-1)
    lagged = (deviation[..., 1:] * deviation[..., :-1]).sum(axis=-1)
    r = np.minimum(np.divide(lagged, total, out=np.zeros_like(total), where=total > 0), 0.95)
    return np.where(r > 1 / math.sqrt(batches.shape[-1]), (1 + r) / (1 - r), 1.0)


@lru_cache(maxsize=4096)
def multiplier(done: int, planned: int, batches: int, alpha: float) -> float:
    """Standard errors from the mean to each bound after `done` of `planned` rounds, with a deviation from `batches` batches."""
    fraction = min(1.0, done / max(planned, 1))
    normal = NormalDist().inv_cdf(1 - alpha / 2) / math.sqrt(fraction)
    return student_quantile(math.erfc(normal / math.sqrt(2)) / 2, batches - 1)


@lru_cache(maxsize=4096)
def student_quantile(tail: float, freedom: int) -> float:
    """Value that a Student variable exceeds with probability `tail` < 0.5; infinite below the smallest float."""
    if tail <= 0.0:
        return math.inf
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail:
        high *= 2
        if high > 1e12:
            return math.inf
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return high


def student_tail(value: float, freedom: int) -> float:
    """P(T > value) for value >= 0: half the regularised incomplete beta function I_x(v/2, 1/2) at x = v / (v + value^2)."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function, by its continued fraction (Lentz's method; DLMF 8.17.22)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d, result = 1.0, 0.0, 1.0
    for step in range(500):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _away_from_zero(1.0 + term * d, tiny)
        c = _away_from_zero(1.0 + term / c, tiny)
        result *= c * d
        if abs(1.0 - c * d) < 1e-14:
            break
    return front * (result - 1.0)


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
