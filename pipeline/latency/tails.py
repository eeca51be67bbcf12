"""Tail quantiles: samples pooled per arm, uncertainty by resampling rounds.

A plain bootstrap of samples takes them for independent and is too narrow; here whole batches of consecutive rounds are drawn, for
both arms together, so that autocorrelation and what is common to a round stay in (Kuensch 1989, with blocks of rounds).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.latency.confidence import BATCHES, LEAST_ROUNDS, batch_length

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = {"p90": 0.90, "p99": 0.99, "p99.9": 0.999}
LEAST_EFFECTIVE = {"p90": 100, "p99": 1_000, "p99.9": 10_000}
"""Effective samples: ten beyond the quantile."""
REPLICATES = 300
SEED = 20_26
"""Fixed: the same samples give the same interval."""
DEPTH = 4.0
"""Share of the tail kept for resampling, in multiples of the tail's size."""


class Tail(NamedTuple):
    """A pooled quantile of one arm in every bootstrap replicate, and what it rests on."""

    value: float
    replicates: NDArray[np.float64]
    effective: float


def draws(batches: int) -> NDArray[np.float64]:
    """How often each batch is drawn in each replicate [replicates, batches]."""
    return np.random.default_rng(SEED).multinomial(batches, np.full(batches, 1 / batches), size=REPLICATES).astype(float)


def batches_of(rounds: int) -> int:
    """Number of batches of consecutive rounds."""
    return max(1, min(BATCHES, rounds // batch_length(rounds))) if rounds >= LEAST_ROUNDS else rounds


def pooled(batch: NDArray[np.int64], ms: NDArray[np.float64], quantile: float, weights: NDArray[np.float64]) -> Tail:
    """Quantile of the pooled samples, in the sample and in every replicate.

    Args:
        batch: Batch of each sample [n].
        ms: Times [n].
        quantile: Above 0.5.
        weights: How often each batch counts [replicates, batches].
    """
    share = 1 - quantile
    value = float(np.quantile(ms, quantile, method="inverted_cdf"))
    keep = min(len(ms), math.ceil(DEPTH * share * len(ms)) + 20)
    top = np.argpartition(ms, len(ms) - keep)[len(ms) - keep :]
    top = top[np.argsort(-ms[top], kind="stable")]
    sizes = np.bincount(batch, minlength=weights.shape[1])
    beyond = np.cumsum(weights[:, batch[top]], axis=1)
    total = weights @ sizes
    wanted = total - quantile * total + 1e-9 * total  # whole numbers must not fall short by rounding
    # the quantile is the largest value with more than the wanted weight at or above it
    at = np.minimum((beyond <= wanted[:, None]).sum(axis=1), keep - 1)
    return Tail(value, ms[top][at], effective_samples(batch, ms > value, sizes))


def effective_samples(batch: NDArray[np.int64], beyond: NDArray[np.bool_], sizes: NDArray[np.int64]) -> float:
    """Samples, divided by how much more the exceedances per batch vary than independent samples would make them."""
    counts = np.bincount(batch, weights=beyond, minlength=len(sizes))
    share = beyond.mean()
    expected = float(sizes.mean() * share * (1 - share))
    if len(sizes) < 2 or expected == 0.0:
        return float(len(batch))
    return len(batch) / max(1.0, float((counts - share * sizes).var(ddof=1)) / expected)
