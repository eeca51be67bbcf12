"""What was seen of the device is joined to the arm that was running."""

from __future__ import annotations

import numpy as np

from pipeline.latency import Samples, readings


def made(starts, arms):
    """One block of two samples per start, in the given order of arms."""
    n = len(starts)
    return Samples(
        arms=("a", "b"),
        shapes=("s",),
        metrics=("m",),
        arm=np.repeat(arms, 2).astype(np.int16),
        shape=np.zeros(2 * n, np.int16),
        metric=np.zeros(2 * n, np.int16),
        round=np.repeat(np.arange(n) // 2, 2).astype(np.int32),
        block=np.repeat(np.arange(n), 2).astype(np.int32),
        start_ns=np.repeat(starts, 2).astype(np.int64),
        ms=np.ones(2 * n),
    )


def test_a_look_belongs_to_the_block_that_began_last():
    samples = made([100, 200, 300, 400], [0, 1, 1, 0])
    found = {r.arm: r.clock_mhz for r in readings(samples, [(50, 1), (100, 2), (199, 3), (200, 4), (350, 5), (400, 6), (999, 7)])}
    assert found == {"a": [2.0, 3.0, 6.0, 7.0], "b": [4.0, 5.0]}


def test_shapes_are_kept_apart():
    other = made([200], [1])
    renamed = Samples(
        arms=other.arms,
        shapes=("t",),
        metrics=other.metrics,
        arm=other.arm,
        shape=other.shape,
        metric=other.metric,
        round=other.round,
        block=other.block,
        start_ns=other.start_ns,
        ms=other.ms,
    )
    both = Samples.concat([made([100], [0]), renamed])
    assert [(r.arm, r.shape) for r in readings(both, [(150, 9), (250, 8)])] == [("a", "s"), ("b", "t")]


def test_nothing_seen_is_no_reading():
    assert readings(made([100], [0]), []) == []
