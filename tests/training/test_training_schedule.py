from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.training.repeatable import derived
from pipeline.training.schedule import SHAPES, learning_rate


@given(steps=st.integers(2, 200), shape=st.sampled_from(sorted(SHAPES)), share=st.floats(0.0, 0.9))
def test_a_rate_is_positive_at_most_the_peak_and_rises_only_in_warm_up(steps, shape, share):
    warmup = share * steps
    rates = [learning_rate(step, steps, peak=0.3, shape=shape, warmup=warmup) for step in range(steps)]
    assert all(0 < rate <= 0.3 + 1e-12 for rate in rates)
    after = rates[int(warmup) + 1 :]
    assert after == sorted(after, reverse=True)
    before = [rate for step, rate in enumerate(rates) if step < warmup]
    assert before == sorted(before)


def test_the_cosine_falls_from_the_peak_through_half_to_nearly_zero():
    rates = [learning_rate(step, 100, peak=1.0, shape="cosine", warmup=0) for step in range(100)]
    assert rates[0] == 1.0
    assert rates[50] == pytest.approx(0.5)
    assert rates[99] < 0.001


def test_a_constant_rate_is_constant():
    assert {learning_rate(step, 9, peak=0.2, shape="constant", warmup=0) for step in range(9)} == {0.2}


@given(seed=st.integers(0, 2**32 - 1), epoch=st.integers(0, 1000))
def test_derived_seeds_are_in_range_and_unlike_their_neighbours(seed, epoch):
    assert 0 <= derived(seed, "dense", epoch) < 2**32
    assert (
        len(
            {
                derived(seed, "dense", epoch),
                derived(seed, "dense", epoch + 1),
                derived(seed, "finetune", epoch),
                derived(seed + 1, "dense", epoch),
            }
        )
        == 4
    )
