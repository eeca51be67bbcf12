"""Intervals hold at every stop, for noise that is neither independent nor normal; each approximation is shown where it would break."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.latency import confidence, tails
from pipeline.latency.rounds import log_ratios, per_round

ALPHA = 0.05


def ar1(rng, experiments, length, phi):
    steps = rng.standard_normal((experiments, length))
    steps[:, 1:] *= math.sqrt(1 - phi**2)
    for t in range(1, length):
        steps[:, t] += phi * steps[:, t - 1]
    return steps


@pytest.mark.parametrize(
    ("tail", "freedom", "value"),
    # from tables (Abramowitz & Stegun 26.10)
    [
        (0.05, 1, 6.314),
        (0.025, 1, 12.706),
        (0.05, 7, 1.895),
        (0.025, 19, 2.093),
        (0.005, 30, 2.750),
        (0.0005, 120, 3.373),
        (0.1, 10, 1.372),
    ],
)
def test_student_quantiles_are_the_tables(tail, freedom, value):
    assert confidence.student_quantile(tail, freedom) == pytest.approx(value, abs=6e-4)


@given(st.floats(1e-12, 0.45), st.integers(1, 500))
@settings(max_examples=60, deadline=None)
def test_quantile_and_tail_are_inverse(tail, freedom):
    assert confidence.student_tail(confidence.student_quantile(tail, freedom), freedom) == pytest.approx(tail, rel=1e-6)


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.001, 0.999))
@settings(max_examples=60, deadline=None)
def test_incomplete_beta_is_the_binomial_tail(a, b, x):
    """I_x(a, b) = P(at least a successes of a + b - 1) (DLMF 8.17.5)."""
    n = a + b - 1
    tail = sum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert confidence.incomplete_beta(a, b, x) == pytest.approx(tail, rel=1e-9, abs=1e-12)


def crossings(series, planned, alpha=ALPHA):
    """Share of series [e, n] whose upper bound falls below the true mean 0 at any look."""
    wrong = np.zeros(len(series), bool)
    for n in range(10, planned + 1, 5):
        found = confidence.centre(series[:, :n], planned, alpha)
        wrong |= found.value + found.half_width < 0
    return float(wrong.mean())


def plain_crossings(series, planned):
    wrong = np.zeros(len(series), bool)
    for n in range(10, planned + 1, 5):
        half = confidence.student_quantile(ALPHA, n - 1) * series[:, :n].std(axis=1, ddof=1) / math.sqrt(n)
        wrong |= series[:, :n].mean(axis=1) + half < 0
    return float(wrong.mean())


@pytest.mark.parametrize(("name", "limit"), [("normal", 0.05), ("spikes", 0.05), ("ar1-0.3", 0.06), ("laplace", 0.05)])
def test_peeking_at_every_look_keeps_the_error(name, limit):
    rng = np.random.default_rng(5)
    shape = (2000, 200)
    series = {
        "normal": lambda: rng.standard_normal(shape),
        "spikes": lambda: rng.standard_normal(shape) * np.where(rng.random(shape) < 0.02, 30, 1),
        "ar1-0.3": lambda: ar1(rng, *shape, 0.3),
        "laplace": lambda: rng.laplace(size=shape),
    }[name]()
    assert crossings(series, 200) < limit
    assert plain_crossings(series, 200) > 0.15


def test_the_bound_is_not_idle():
    """An interval that never misses would be too wide: on normal rounds it misses at nearly the nominal rate."""
    rng = np.random.default_rng(6)
    assert 0.02 < crossings(rng.standard_normal((4000, 200)), 200) < 0.05


def test_strong_autocorrelation_needs_the_batches():
    rng = np.random.default_rng(7)
    series = ar1(rng, 1000, 512, 0.8)
    found = confidence.centre(series, 512, ALPHA)
    missed = np.mean(found.value + found.half_width < 0)
    naive = series.std(axis=1, ddof=1) / math.sqrt(512) * confidence.multiplier(512, 512, 512, ALPHA)
    assert missed < 0.05
    assert np.mean(series.mean(axis=1) + naive < 0) > 0.2
    assert np.median(found.effective_rounds) <= 512


@given(st.integers(8, 3000))
def test_batches_cover_every_round_once(n):
    values = np.arange(n, dtype=float)
    batches = confidence.batch_means(values)
    length = confidence.batch_length(n)
    assert len(batches) <= confidence.BATCHES
    assert length & (length - 1) == 0
    sizes = np.diff(np.linspace(0, n, n // length + 1).round().astype(int))
    assert (batches * sizes).sum() == pytest.approx(values.sum())
    assert sizes.min() >= length
    assert sizes.max() - sizes.min() <= 1


@given(st.integers(8, 200), st.integers(8, 400), st.floats(0.01, 0.3))
@settings(max_examples=60, deadline=None)
def test_more_rounds_narrow_the_factor_and_small_alpha_widens_it(done, planned, alpha):
    done = min(done, planned)
    factor = confidence.multiplier(done, planned, 32, alpha)
    assert factor >= confidence.multiplier(planned, planned, 32, alpha)
    assert factor <= confidence.multiplier(done, planned, 32, alpha / 2)
    assert factor >= confidence.student_quantile(alpha / 2, 31) - 1e-9


@given(st.lists(st.tuples(st.integers(0, 6), st.floats(0.1, 100)), min_size=1, max_size=60), st.sampled_from(["p50", "mean"]), st.randoms())
def test_rounds_are_reduced_whatever_the_order(samples, quantity, random):
    random.shuffle(samples)
    rounds, ms = np.array([r for r, _ in samples]), np.array([v for _, v in samples])
    names, values = per_round(rounds, ms, quantity)
    assert list(names) == sorted(set(rounds))
    for name, value in zip(names, values, strict=True):
        block = ms[rounds == name]
        assert value == pytest.approx(np.median(block) if quantity == "p50" else block.mean())


@given(st.floats(0.2, 5.0), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_what_is_common_to_a_round_cancels(ratio, seed):
    rng = np.random.default_rng(seed)
    rounds = np.repeat(np.arange(30), 5)
    common = np.exp(rng.standard_normal(30))[rounds]
    _, logs = log_ratios((rounds, ratio * common), (rounds, common), "p50")
    assert logs == pytest.approx(np.full(30, math.log(ratio)))


def test_rounds_that_one_arm_lacks_are_left_out():
    _, logs = log_ratios((np.array([0, 1, 3]), np.array([2.0, 2.0, 2.0])), (np.array([1, 2, 3]), np.array([1.0, 1.0, 1.0])), "p50")
    assert logs == pytest.approx(np.log([2.0, 2.0]))


@given(st.lists(st.floats(0.1, 100), min_size=5, max_size=300), st.sampled_from([0.9, 0.99, 0.999]))
@settings(max_examples=60)
def test_the_pooled_quantile_is_the_order_statistic(values, quantile):
    ms = np.array(values)
    tail = tails.pooled(np.zeros(len(ms), int), ms, quantile, np.ones((1, 1)))
    assert tail.value == np.quantile(ms, quantile, method="inverted_cdf")
    assert tail.replicates[0] == tail.value


def test_replicates_are_the_quantiles_of_the_drawn_batches():
    rng = np.random.default_rng(3)
    ms, batch = rng.exponential(size=400), np.repeat(np.arange(8), 50)
    weights = tails.draws(8)[:20]
    found = tails.pooled(batch, ms, 0.9, weights)
    for weight, replicate in zip(weights, found.replicates, strict=True):
        drawn = np.concatenate([np.tile(ms[batch == b], int(w)) for b, w in enumerate(weight)])
        assert replicate == np.quantile(drawn, 0.9, method="inverted_cdf")


def test_exceedances_that_come_together_are_worth_fewer_samples():
    rng = np.random.default_rng(4)
    batch = np.repeat(np.arange(50), 100)
    sizes = np.full(50, 100)
    apart = rng.random(5000) < 0.01
    together = np.zeros(5000, bool)
    together[:50] = True
    assert tails.effective_samples(batch, apart, sizes) > 3500
    assert tails.effective_samples(batch, together, sizes) < 300


def test_a_plain_bootstrap_of_autocorrelated_samples_is_too_narrow():
    """Why batches of rounds are drawn and not samples: on AR(1) 0.9 the plain error is a third of the true one."""
    rng = np.random.default_rng(8)
    series = ar1(rng, 300, 4000, 0.9) + 10
    true_error = np.quantile(series, 0.9, axis=1).std()
    batch = np.repeat(np.arange(50), 80)
    blocks = [np.std(tails.pooled(batch, one, 0.9, tails.draws(50)).replicates) for one in series[:40]]
    plain = [np.std([np.quantile(one[rng.integers(0, 4000, 4000)], 0.9) for _ in range(60)]) for one in series[:10]]
    assert np.mean(plain) < 0.5 * true_error
    assert np.mean(blocks) == pytest.approx(true_error, rel=0.2)
