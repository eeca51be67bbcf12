"""The pattern on an array: any shape, axis, type, order in memory and block size."""

from __future__ import annotations

from math import prod

import graph_zoo as zoo
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import pattern
from pipeline.graph.near import near_miss, third_largest

KINDS = [
    np.float32,
    np.float16,
    np.float64,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float4_e2m1fn,
    ml_dtypes.int4,
    np.int8,
    np.uint8,
    np.int32,
    bool,
]
SPECIAL = [0.0, -0.0, 0.0, 0.0, 1.0, -1.5, float("nan"), float("inf"), -float("inf"), 6e-8]


@st.composite
def arrays(draw):
    kind = np.dtype(draw(st.sampled_from(KINDS)))
    sizes = st.lists(st.sampled_from([1, 2, 3, 4, 5, 8, 12, 70]), min_size=1, max_size=4)
    shape = tuple(draw(sizes.filter(lambda found: prod(found) < 20_000)))
    numbers = np.random.default_rng(draw(st.integers(0, 10**6))).choice(SPECIAL[: draw(st.integers(5, len(SPECIAL)))], shape)
    if kind.kind in "iub" or kind.name in ("int4", "float4_e2m1fn"):
        numbers = np.nan_to_num(numbers, posinf=1, neginf=1)
    with np.errstate(all="ignore"):
        array = np.abs(numbers).astype(kind) if kind.kind == "u" else numbers.astype(kind)
    if draw(st.booleans()):
        array = array.transpose(draw(st.permutations(range(array.ndim))))
    return array, draw(st.integers(0, array.ndim - 1))


@settings(max_examples=100, deadline=None)
@given(arrays(), st.integers(4, 200))
def test_a_survey_counts_as_plain_python_does(case, chunk):
    array, axis = case
    truth = zoo.brute_force(array, axis)
    whole = pattern.Facts()
    for limit in (pattern.CHUNK, chunk):
        before, pattern.CHUNK = pattern.CHUNK, limit
        try:
            whole = pattern.survey(array, axis)
        finally:
            pattern.CHUNK = before
        assert (whole.two_four, whole.violating, whole.zeros) == (truth.two_four, truth.violating, truth.zeros)
        assert (whole.negative_zeros, whole.nonfinite) == (truth.negative_zeros, truth.nonfinite)
    assert pattern.is_two_four(array, axis) is truth.two_four
    found = pattern.violations(array, axis)
    assert (found is None) == bool(array.shape[axis] % 4)
    if found is not None:
        assert found.sum() == truth.violating


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 13), min_size=1, max_size=4), st.data(), st.integers(4, 500))
def test_blocks_cover_an_array_once_in_whole_groups(shape, data, limit):
    axis = data.draw(st.integers(0, len(shape) - 1))
    seen = np.zeros(shape, dtype=int)
    for block in pattern.blocks(tuple(shape), axis, limit):
        seen[block] += 1
        assert block[axis].start % 4 == 0
        assert block[axis].stop % 4 == 0 or block[axis].stop == shape[axis]
        assert seen[block].size <= max(limit, 4)
    assert (seen == 1).all()


def test_located_groups_are_the_first_that_violate():
    array = zoo.two_four(zoo.dense((8, 16, 3, 3), 0), 1, 0)
    array[5, 8:12, 2, 1] = 1
    array[7, 0:3, 0, 0] = 1
    array[7, 3, 0, 0] = 0
    facts = pattern.survey(array, 1)
    assert (facts.violating, facts.located) == (2, [(5, 8, 2, 1), (7, 0, 0, 0)])


def test_a_segment_keeps_groups_from_straddling_two_reductions():
    array = np.zeros((12, 1))
    array[[4, 5, 6]] = 1
    assert pattern.survey(array, 0).violating == 1
    assert pattern.survey(array, 0, segment=6).groups is None


@pytest.mark.parametrize("axis", [-1, -2])
def test_negative_axes_count_from_the_end(axis):
    array = zoo.two_four(zoo.dense((4, 8), 3), axis % 2, 1)
    assert pattern.is_two_four(array, axis)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_not_nearly_2_4(value):
    array = np.where(zoo.two_four(zoo.dense((8, 8), 0), 0, 0) == 0, 1e-9, 1).astype(np.float32)
    assert near_miss(lambda block: array[block], array.shape, 0) is not None
    array[3, 3] = value
    assert near_miss(lambda block: array[block], array.shape, 0) is None


@given(st.integers(0, 10**6))
def test_the_third_largest_of_a_group_is_that_of_a_sort(seed):
    array = np.random.default_rng(seed).random((3, 8, 2))
    found = third_largest(array, 1)
    assert np.array_equal(found, np.sort(array.reshape(3, 2, 4, 2), axis=2)[:, :, 1])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-12, 1e-3))
def test_the_threshold_is_the_smallest_that_makes_it_2_4(seed, tiny):
    array = zoo.two_four(zoo.dense((8, 8), seed), 0, seed)
    array = np.where(array == 0, np.random.default_rng(seed).random(array.shape) * tiny, array).astype(np.float32)
    found = near_miss(lambda block: array[block], array.shape, 0)
    assert found is not None
    assert pattern.is_two_four(np.where(np.abs(array) <= found.threshold, 0, array), 0)
    assert not pattern.is_two_four(np.where(np.abs(array) < found.threshold, 0, array), 0)
