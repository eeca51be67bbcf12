"""The scorecard judges as the gate does, and its promises hold on a small sample of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from one_sample_blocks import one_sample_blocks

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def card():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import gates
        import noise
        import scorecard

        yield scorecard, gates, noise
    finally:
        sys.path.remove(str(BENCHMARKS))


def as_samples(found, design, at, ratio):
    """One simulated experiment as the samples that the real code reads."""
    from pipeline.latency import Sampling

    logs = found.logs[at].copy()
    logs[:, 0] += np.log(ratio)
    sampling = Sampling(planned_rounds=design.rounds, rounds=design.rounds, settled={})
    arms = ("sparse", "dense", "dense@again")
    return one_sample_blocks(4 * np.exp(logs), arms, shape="batch=1", metric="host_latency", sampling=sampling)


@pytest.mark.parametrize("ratio", [1.05 * 0.98, 1.05, 1.05 * 1.03])
def test_the_simulated_gate_is_the_real_one(card, ratio):
    """Same decisions as `decided` over samples, rule by rule, A/A comparison included."""
    from pipeline.judging import decided
    from pipeline.records.evidence import Evidence

    scorecard, gates, noise = card
    design = scorecard.block_design()._replace(rounds=90)
    found = gates.draw(noise.PROCESSES["ar1"], np.random.default_rng(11), 12, 0.03, design)
    outcomes, _ = gates.decide(
        found.logs[..., 0] - found.logs[..., 1] + np.log(ratio), found.logs[..., 2] - found.logs[..., 1], 90, 1.05, 0.05
    )
    enough = decided([{"kind": "latency", "over": "dense", "at_most": 1.05}], Evidence(), 0.05)
    real = [enough(as_samples(found, design, at, ratio)) for at in range(12)]
    assert [bool(outcome) for outcome in outcomes] == real


@pytest.mark.parametrize("name", ["white", "ar1", "drift", "spikes", "bimodal", "lognormal", "trace-loaded"])
def test_a_small_scorecard_holds(card, name):
    scorecard, *_ = card
    cell = scorecard.run_cell(name, 0.03, scorecard.block_design(), 60, seed=3)
    row, _ = scorecard.own_row(name, 0.03, cell, scorecard.block_design())
    wrong, n = cell.share("sparsegate", "at", 1)
    right, _ = cell.share("sparsegate", "better", 1)
    assert wrong <= 3, row
    assert right >= 0.8 * n, row


def test_the_usual_gates_break_where_the_table_says(card):
    scorecard, *_ = card
    cell = scorecard.run_cell("ar1", 0.03, scorecard.block_design(), 60, seed=4)
    assert cell.share("two medians", "at", 1)[0] > 15
    assert cell.share("peeking", "at", 1)[0] > 6
    assert cell.share("Mann-Whitney", "at", 1)[0] > 6


def test_every_process_has_the_cv_that_it_is_given(card):
    *_, noise = card
    for name, process in noise.PROCESSES.items():
        found = process.draw(np.random.default_rng(2), 40, 6000, 0.03)
        assert found.shape == (40, 6000)
        assert np.median(found) == pytest.approx(1, abs=0.05)
        cv = found.std(axis=1) / found.mean(axis=1)
        assert np.median(cv) == pytest.approx(0.03, rel=0.35), name
