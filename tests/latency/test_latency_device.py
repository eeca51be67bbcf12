"""What was seen of the device is joined to the arm that was running."""

from __future__ import annotations

import numpy as np

from pipeline.gpu_watch import THROTTLES, Look
from pipeline.latency import Samples, readings
from pipeline.verdict.conditions import HARMLESS_SLOWDOWN


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


def look(at_ns, clock=1.0, **told):
    return Look(at_ns=at_ns, figures={"sm_clock_mhz": clock, "power_w": 10 * clock}, **told)


def test_a_look_belongs_to_the_block_that_began_last():
    samples = made([100, 200, 300, 400], [0, 1, 1, 0])
    looks = [look(at, clock) for at, clock in [(50, 1), (100, 2), (199, 3), (200, 4), (350, 5), (400, 6), (499, 7)]]
    found = {r.arm: r for r in readings(samples, looks)}
    assert {arm: r.clock_mhz for arm, r in found.items()} == {"a": [2.0, 3.0, 6.0, 7.0], "b": [4.0, 5.0]}
    assert found["b"].power_w == [40.0, 50.0]
    assert found["a"].temperature_c == []


def test_what_is_seen_after_sampling_is_no_arms():
    """Engines are loaded and profiled then, on a device whose clocks have dropped."""
    samples = made([100, 200, 350], [0, 1, 0])
    found = {r.arm: r.clock_mhz for r in readings(samples, [look(500, 1), look(501, 2), look(9_999, 3)])}
    assert found == {"a": [1.0]}


def test_a_slowdown_and_other_processes_are_those_of_the_arm_that_ran():
    samples = made([100, 200], [0, 1])
    looks = [look(110, slowdown=["HwThermalSlowdown", "SwPowerCap"], others=0), look(210, slowdown=[], others=2), look(220, others=1)]
    a, b = readings(samples, looks)
    assert (a.slowdown, a.other_processes) == (["hw_thermal_slowdown", "sw_power_cap"], 0)
    assert (b.slowdown, b.other_processes) == ([], 2)


def test_untold_is_not_none_seen():
    (reading,) = readings(made([100], [0]), [look(110)])
    assert reading.other_processes is None


def test_names_of_slowdowns_are_those_that_the_gate_forgives():
    (reading,) = readings(made([100], [0]), [look(110, slowdown=list(THROTTLES))])
    assert set(reading.slowdown) & HARMLESS_SLOWDOWN == {"sw_power_cap"}
    assert len(reading.slowdown) == len(THROTTLES)


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
    assert [(r.arm, r.shape) for r in readings(both, [look(150), look(250)])] == [("a", "s"), ("b", "t")]


def test_nothing_seen_is_no_reading():
    assert readings(made([100], [0]), []) == []
