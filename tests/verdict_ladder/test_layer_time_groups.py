"""Rung 7 compares the same ONNX nodes in both arms, however each arm fused them."""

from __future__ import annotations

import random
from math import comb

import numpy as np
import pytest

from pipeline.records.measurement import LayerTime
from pipeline.verdict.layer_times import _cut, _ways, compare, ratio_interval


def time(arm, layer, nodes, *passes):
    return LayerTime(arm=arm, shape="batch=1", layer=layer, onnx_nodes=list(nodes), passes_ms=list(passes) or [1.0, 1.1, 1.2])


def test_layers_fused_differently_meet_in_the_smallest_common_group():
    times = [
        time("a", "c1 + r1", ["c1", "r1"], *[4] * 4),
        time("a", "c2", ["c2"], *[3] * 4),
        time("b", "c1", ["c1"], *[2] * 4),
        time("b", "r1", ["r1"], *[3] * 4),
        time("b", "c2", ["c2"], *[3] * 4),
    ]
    groups = {group.nodes: group for group in compare(times, arm="a", over="b", nodes={})}
    assert set(groups) == {frozenset({"c1", "r1"}), frozenset({"c2"})}
    assert groups[frozenset({"c1", "r1"})].ratio.value == pytest.approx(0.8)
    assert groups[frozenset({"c2"})].ratio.value == pytest.approx(1.0)


@pytest.mark.parametrize(("layers", "needed"), [(1, 3), (7, 5), (100, 7)])
def test_the_more_layers_there_are_the_more_passes_a_claim_takes(layers, needed):
    for passes in (needed - 1, needed):
        times = [time(arm, f"c{i}", [f"c{i}"], *[ms] * passes) for i in range(layers) for arm, ms in (("a", 1.0), ("b", 2.0))]
        groups = compare(times, arm="a", over="b", nodes={})
        assert {group.ratio is not None for group in groups} == {passes == needed}
        assert {group.passes_needed for group in groups} == {needed}


def test_among_layers_that_do_not_differ_none_reads_faster_in_nine_runs_of_ten():
    draw = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        times = [time(arm, f"c{i}", [f"c{i}"], *draw.lognormal(0, 0.1, 7)) for i in range(20) for arm in ("a", "b")]
        ratios = [group.ratio for group in compare(times, arm="a", over="b", nodes={})]
        wrong += any(ratio.high < 1 or ratio.low > 1 for ratio in ratios)
    assert wrong <= 0.1 * 200 + 2 * (200 * 0.1 * 0.9) ** 0.5


@pytest.mark.parametrize(
    "reformat",
    ["Reformatting CopyNode for Input Tensor 0 to c1", "Reformatting CopyNode for Output Tensor 1 to c1", "c1 input reformatter 0"],
)
def test_a_reformat_counts_to_its_layer(reformat):
    times = [time("a", "c1", ["c1"], 1, 1, 1), time("a", reformat, [], 1, 1, 1), time("b", "c1", ["c1"], 1, 1, 1)]
    (group,) = compare(times, arm="a", over="b", nodes={})
    assert group.ratio.value == pytest.approx(2.0)
    assert group.arm_layers == ("c1", reformat)


def test_names_without_nodes_are_joined_through_the_tactic_record():
    times = [time("a", "fused", []), time("b", "c1", [])]
    nodes = {"a": {"fused": frozenset({"c1"})}, "b": {"c1": frozenset({"c1"})}}
    assert len(compare(times, arm="a", over="b", nodes=nodes)) == 1
    assert compare(times, arm="a", over="b", nodes={}) == []


def test_two_passes_are_too_few_for_an_interval():
    assert ratio_interval([1, 2], [3, 4]) is None
    assert ratio_interval([1, 2, 3], [3, 4]) is None
    assert ratio_interval([0, 2, 3], [3, 4, 5]) is None


def test_a_myelin_region_is_marked():
    times = [time("a", "{ForeignNode[m1...m9]}", ["m1", "m2"]), time("b", "m1", ["m1"])]
    assert compare(times, arm="a", over="b", nodes={})[0].myelin


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 3), (4, 7), (6, 6)])
def test_the_null_distribution_counts_every_ordering(n, m):
    ways = _ways(n, m)
    assert sum(ways) == comb(n + m, n)
    assert ways == ways[::-1]
    if n + m <= 7:
        from itertools import combinations

        counted = [0] * (n * m + 1)
        for chosen in combinations(range(n + m), n):
            counted[sum(position - rank for rank, position in enumerate(chosen))] += 1
        assert ways == counted


def test_the_interval_covers_the_true_ratio_as_often_as_it_says():
    rng = random.Random(7)
    draws, missed = 1500, 0
    for _ in range(draws):
        a = [0.8 * rng.lognormvariate(0, 0.05) for _ in range(5)]
        b = [rng.lognormvariate(0, 0.05) for _ in range(5)]
        found = ratio_interval(a, b)
        missed += not found.low <= 0.8 <= found.high
    assert missed / draws <= 0.10 + 0.02
    assert _cut(5, 5, 0.9) == 4
