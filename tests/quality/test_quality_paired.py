"""The paired test keeps its error for few discordant samples, and its interval is what the test says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.quality import paired
from pipeline.quality.compare import bootstrap_t, level, loss, needed
from pipeline.quality.slices import holm, worst_slice

ALPHA = 0.05


def trinomial(b, c, n, pb, pc):
    rest = n - b - c
    logs = math.lgamma(n + 1) - math.lgamma(b + 1) - math.lgamma(c + 1) - math.lgamma(rest + 1)
    for count, p in ((b, pb), (c, pc), (rest, 1 - pb - pc)):
        if count:
            if p <= 0:
                return 0.0
            logs += count * math.log(p)
    return math.exp(logs)


@pytest.mark.parametrize(("n", "budget"), [(60, 0.05), (360, 0.01), (900, 0.01)])
@pytest.mark.parametrize("better", [0.0, 0.002, 0.02])
def test_false_passes_stay_below_alpha_whatever_the_discordance(n, budget, better):
    """Exact: the probability of every outcome that passes, summed, at a loss equal to the budget."""
    reach = int(n * (better + budget) + 8 * math.sqrt(n * (better + budget)) + 10)
    wrong, most = 0.0, -1
    for c in range(min(reach, n) + 1):
        while most + 1 + c <= n and paired.p_below(most + 1, c, n, budget) < ALPHA:  # one more better allows as many worse or more
            most += 1
        wrong += sum(trinomial(b, c, n, better + budget, better) for b in range(most + 1))
    assert wrong <= ALPHA + 1e-9


@given(st.integers(20, 300), st.integers(0, 8), st.integers(0, 8))
@settings(max_examples=12, deadline=None)
def test_the_interval_is_the_test_inverted(n, b, c):
    upper, lower = paired.upper_bound(b, c, n, ALPHA), paired.lower_bound(b, c, n, ALPHA)
    assert lower <= (b - c) / n <= upper
    assert lower == -paired.upper_bound(c, b, n, ALPHA)
    if upper < 0.99:
        assert paired.p_below(b, c, n, upper + 1e-3) <= ALPHA + 5e-3


@given(st.integers(30, 500), st.integers(0, 10), st.integers(0, 10), st.floats(0.005, 0.1))
@settings(max_examples=20, deadline=None)
def test_a_sample_that_gets_worse_never_helps(n, b, c, budget):
    assert paired.p_below(b + 1, c, n, budget) >= paired.p_below(b, c, n, budget) - 1e-6
    assert paired.p_above(b + 1, c, n, budget) <= paired.p_above(b, c, n, budget) + 1e-6


def test_no_difference_in_few_samples_proves_little():
    """A bootstrap of no differences would say [0, 0]; the exact bound is that of zero successes."""
    for n in (30, 100, 360):
        assert paired.upper_bound(0, 0, n, ALPHA) >= 1 - ALPHA ** (1 / n) - 1e-4
    assert bootstrap_t(np.zeros(30), ALPHA) == (0.0, 0.0)


def test_large_counts_agree_with_the_normal_law():
    b, c, n = 400, 350, 10_000
    spread = math.sqrt(b + c - (b - c) ** 2 / n) / n
    assert paired.upper_bound(b, c, n, ALPHA) == pytest.approx((b - c) / n + 1.645 * spread, abs=2e-4)


@pytest.mark.parametrize(("b", "c"), [(30, 25), (20, 10), (45, 30)])
def test_exact_and_asymptotic_meet(b, c):
    n = 2000
    exact = paired._exact(b, c, n, 0.02)
    asymptotic = paired.NormalDist().cdf(float(paired.score_statistic(np.array(b), np.array(c), n, 0.02)))
    assert exact == pytest.approx(asymptotic, abs=0.015)


@given(st.integers(1, 400), st.data())
@settings(max_examples=20, deadline=None)
def test_clopper_pearson_bounds(n, data):
    k = data.draw(st.integers(0, n))
    low, high = paired.beta_bound(k, n, ALPHA, upper=False), paired.beta_bound(k, n, ALPHA, upper=True)
    assert low <= k / n <= high
    if k:
        tail = sum(math.comb(n, i) * low**i * (1 - low) ** (n - i) for i in range(k, n + 1))
        assert tail == pytest.approx(ALPHA, rel=1e-6)
    assert high == pytest.approx(1 - paired.beta_bound(n - k, n, ALPHA, upper=False))


def test_losses_of_errors_are_positive_when_the_error_grows():
    rng = np.random.default_rng(0)
    before = rng.exponential(1, 400)
    found = loss(before, before + 0.1 + 0.05 * rng.standard_normal(400), "mae", ALPHA)
    assert found.value == pytest.approx(0.1, abs=0.01)
    assert found.low < 0.1 < found.high
    assert found.method == "paired bootstrap-t"


def test_bootstrap_t_covers_skewed_means():
    rng = np.random.default_rng(1)
    missed = [not (b[0] <= 1 <= b[1]) for b in (bootstrap_t(rng.exponential(1, 60), ALPHA) for _ in range(120))]
    assert np.mean(missed) < 0.16


def test_too_few_samples_have_no_interval():
    assert bootstrap_t(np.arange(5.0), ALPHA) is None
    assert level(np.arange(5.0), "mse", ALPHA).high is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.2))
def test_holm_rejects_at_least_what_bonferroni_does_and_at_most_what_each_alone_would(p_values, alpha):
    rejected = holm(p_values, alpha)
    for p, out in zip(p_values, rejected, strict=True):
        assert out or p > alpha / len(p_values)
        assert not out or p <= alpha


def test_a_wrong_accusation_of_a_slice_stays_rare():
    """Twenty slices exactly at the budget: without Holm's correction one would be accused far more often."""
    rng = np.random.default_rng(2)
    n, slices, budget = 2000, 10, 0.05
    labels = np.arange(n) % slices
    members = {str(s): labels == s for s in range(slices)}
    accused = alone = 0
    for _ in range(40):
        before = np.ones(n)
        after = 1.0 - (rng.random(n) < budget)
        found = worst_slice(before, after, members, "accuracy", budget=budget, alpha=ALPHA)
        accused += any(one.over for one in found)
        alone += any(one.drop.low > budget for one in found)
    assert accused <= 6
    assert alone > accused


def test_what_is_needed_decides_more_often_than_not():
    rng = np.random.default_rng(3)
    budget, discordant = 0.02, 0.01
    draw = lambda n: (np.ones(n), 1.0 - (rng.random(n) < discordant))  # noqa: E731
    before, after = draw(200)
    found = loss(before, after, "accuracy", ALPHA)
    enough = needed(found._replace(value=discordant, spread=math.sqrt(discordant)), budget, ALPHA)
    decided = sum(loss(*draw(enough), "accuracy", ALPHA).high < budget for _ in range(40))
    assert 0.55 * 40 < decided < 40
