"""The search finds orders that keep more, reproducibly, and never loses a column."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.sparsity.permutation.search import kept_magnitude, search
from pipeline.sparsity.permutation.torch_search import search_torch

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def brute_force(data: np.ndarray) -> float:
    """The best that two stripes can keep, over all 35 partings, computed by sorting."""
    from itertools import combinations

    best = 0.0
    for half in combinations(range(8), 4):
        rest = [one for one in range(8) if one not in half]
        best = max(best, sum(float(np.sort(data[list(part)], axis=0)[2:].sum()) for part in (half, rest)))
    return best


@given(arrays(np.float64, (5, 8), elements=st.floats(-4, 4, width=16)))
@settings(deadline=None, max_examples=60)
def test_two_stripes_are_solved_exactly(matrix):
    found = search(matrix, seconds=0.02)
    assert found.kept == pytest.approx(brute_force(np.abs(matrix).T), rel=1e-5, abs=1e-6)


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 5))
@settings(deadline=None, max_examples=30)
def test_an_order_is_a_permutation_that_keeps_at_least_as_much(rows, stripes, seed):
    matrix = np.random.default_rng(seed).standard_normal((rows, 4 * stripes)).astype(np.float32)
    found = search(matrix, seconds=0.005, seed=seed)
    assert sorted(found.order.tolist()) == list(range(4 * stripes))
    data = np.abs(matrix).T
    assert found.kept == pytest.approx(kept_magnitude(data[found.order]))
    assert found.kept_before <= found.kept <= found.unstructured + 1e-6


@pytest.mark.parametrize(("columns", "rows", "seconds"), [(32, 16, 0.02), (256, 64, 0.05)])
def test_the_same_seed_finds_the_same_order(columns, rows, seconds):
    matrix = np.random.default_rng(3).random((rows, columns))
    found = [search(matrix, seconds=seconds, seed=7) for _ in range(3)]
    whole = [one.order.tolist() for one in found if one.complete]
    assert all(order == whole[0] for order in whole)
    assert all(one.regained > 0.1 for one in found)


def test_a_planted_order_is_found_again():
    # four large columns side by side in each stripe of the given order, two and two in the best
    random = np.random.default_rng(0)
    large, small = random.random((40, 16)) + 1, random.random((40, 16)) * 0.01
    matrix = np.concatenate([large, small], axis=1)
    found = search(matrix, seconds=0.05)
    assert found.kept == pytest.approx(float(large.sum()), rel=1e-3)


def test_nothing_to_search_is_no_error():
    for matrix in (np.zeros((4, 16)), np.ones((3, 4)), np.zeros((0, 8))):
        found = search(matrix, seconds=0.01)
        assert found.order.tolist() == list(range(matrix.shape[1])) and found.regained == 0.0


def test_no_time_keeps_the_order():
    assert search(np.random.default_rng(0).random((8, 16)), seconds=0).order.tolist() == list(range(16))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("columns", "rows", "least"), [(64, 128, 0.25), (20, 30, 0.15)])
def test_the_torch_search_finds_orders_too(device, columns, rows, least):
    matrix = np.random.default_rng(0).random((rows, columns))
    found = search_torch(matrix, rounds=150, device=device)
    assert sorted(found.order.tolist()) == list(range(columns))
    assert found.kept == pytest.approx(kept_magnitude(np.abs(matrix).T[found.order]), rel=1e-6)
    assert found.regained > least


@pytest.mark.parametrize("device", DEVICES)
def test_the_torch_search_repeats_itself_and_ends_in_time(device):
    matrix = np.random.default_rng(0).random((16, 64))
    one, other = (search_torch(matrix, rounds=20, seed=5, device=device).order.tolist() for _ in range(2))
    assert one == other
    assert search_torch(matrix, seconds=0.05, device=device).seconds < 5


@pytest.mark.parametrize("device", DEVICES)
def test_the_torch_search_solves_two_stripes_exactly(device):
    for seed in range(5):
        matrix = np.random.default_rng(seed).standard_normal((6, 8)).astype(np.float32)
        found = search_torch(matrix, rounds=8, seed=seed, device=device)
        assert found.kept == pytest.approx(brute_force(np.abs(matrix).T), rel=1e-5)


def test_the_torch_search_without_columns_to_exchange_keeps_the_order():
    assert search_torch(np.ones((3, 4)), seconds=0.01, device="cpu").order.tolist() == [0, 1, 2, 3]
