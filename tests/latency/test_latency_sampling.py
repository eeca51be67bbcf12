"""Sampling interleaves the arms, keeps every sample, and ends when it should."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import InputError, StageError
from pipeline.latency import Plan, Samples, sample


class Clock:
    """Virtual time that samplers move forward."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds


class FakeEngine:
    """Takes `ms` per inference of virtual time; `drift` ms are added over each virtual second."""

    def __init__(self, clock, ms, seed=0, cv=0.01, drift=0.0, calls=None, name=""):
        self.clock, self.ms, self.cv, self.drift = clock, ms, cv, drift
        self.rng = np.random.default_rng(seed)
        self.calls, self.name = calls, name

    def block(self, count):
        if self.calls is not None:
            self.calls.append((self.name, count))
        times = self.ms * (1 + self.cv * self.rng.standard_normal(count)) + self.drift * self.clock.now
        self.clock.now += times.sum() / 1e3
        return {"host_latency": times, "gpu_compute": times * 0.9}


def run(clock, arms, plan=None, **more):
    plan = plan or Plan(seconds=2.0, rounds=10)
    return sample(arms, shape="batch=8", plan=plan, seed=1, clock=clock, pause=clock.pause, **more)


def test_every_round_runs_every_arm_once_in_an_order_drawn_anew():
    clock, calls = Clock(), []
    arms = {name: FakeEngine(clock, 1.0, seed=i, calls=calls, name=name) for i, name in enumerate("abc")}
    samples = run(clock, arms)
    for round_ in np.unique(samples.round):
        here = samples.round == round_
        assert sorted(np.unique(samples.arm[here])) == [0, 1, 2]
    orders = {tuple(dict.fromkeys(samples.arm[samples.round == r].tolist())) for r in np.unique(samples.round)}
    assert len(orders) == 6


def test_all_arms_get_equal_blocks_and_the_plan_is_kept():
    clock = Clock()
    samples = run(clock, {"fast": FakeEngine(clock, 1.0), "slow": FakeEngine(clock, 4.0)})
    sizes = {arm: len(samples.of(arm, "batch=8", "host_latency")[1]) for arm in ("fast", "slow")}
    assert sizes["fast"] == sizes["slow"]
    facts = samples.sampling["batch=8"]
    assert facts.rounds == facts.planned_rounds == len(np.unique(samples.round))
    assert facts.stopped == "rounds"
    assert 1.5 < clock.now < 4.0
    assert facts.settled == {"fast": True, "slow": True}


def test_slow_engines_still_get_the_least_number_of_rounds():
    clock = Clock()
    samples = run(clock, {"a": FakeEngine(clock, 900.0), "b": FakeEngine(clock, 900.0)}, Plan(seconds=1.0, rounds=10, warmup_seconds=0))
    assert len(np.unique(samples.round)) == 10
    assert len(samples.of("a", "batch=8", "gpu_compute")[1]) == 10


def test_sampling_stops_when_the_rule_is_decided():
    clock = Clock()
    seen = []
    samples = run(clock, {"a": FakeEngine(clock, 1.0)}, decided=lambda s: seen.append(s.sampling["batch=8"].rounds) or len(seen) == 3)
    facts = samples.sampling["batch=8"]
    assert facts.stopped == "decided"
    assert facts.rounds == seen[-1] < facts.planned_rounds
    assert seen[0] == 10


def test_an_arm_that_never_settles_is_recorded():
    clock = Clock()
    samples = run(
        clock, {"a": FakeEngine(clock, 1.0), "b": FakeEngine(clock, 1.0, drift=0.5)}, Plan(seconds=1.0, rounds=10, warmup_seconds=2.0)
    )
    assert samples.sampling["batch=8"].settled == {"a": True, "b": False}


def test_a_machine_that_slows_down_ends_at_the_time_limit():
    clock = Clock()
    samples = run(clock, {"a": FakeEngine(clock, 1.0, drift=3.0)}, Plan(seconds=1.0, rounds=8, warmup_seconds=0.0))
    assert samples.sampling["batch=8"].stopped == "time limit"
    assert samples.sampling["batch=8"].rounds < samples.sampling["batch=8"].planned_rounds


def test_samples_survive_saving_and_loading(tmp_path):
    clock = Clock()
    one = run(clock, {"a": FakeEngine(clock, 1.0), "b": FakeEngine(clock, 1.1)})
    two = sample(
        {"b": FakeEngine(clock, 2.0), "c": FakeEngine(clock, 2.0)},
        shape="batch=1",
        plan=Plan(seconds=1.0),
        seed=2,
        clock=clock,
        pause=clock.pause,
    )
    both = Samples.concat([one, two])
    both.save(tmp_path / "deep" / "samples.npz")
    again = Samples.load(tmp_path / "deep" / "samples.npz")
    assert again.sampling == both.sampling
    assert again.present() == both.present()
    for part in (one, two):
        for key in part.present():
            for column, expected in zip(again.of(*key), part.of(*key), strict=True):
                assert np.array_equal(column, expected)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x00" * 100])
def test_a_damaged_samples_file_is_refused_with_its_name(tmp_path, data):
    path = tmp_path / "samples.npz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"samples\.npz"):
        Samples.load(path)


def test_a_samples_file_with_impossible_times_is_refused(tmp_path):
    clock = Clock()
    one = run(clock, {"a": FakeEngine(clock, 1.0)})
    one.ms[3] = -1.0
    one.save(tmp_path / "s.npz")
    with pytest.raises(InputError, match="damaged"):
        Samples.load(tmp_path / "s.npz")


def test_bad_samplers_are_named():
    clock = Clock()

    class Broken:
        def block(self, count):
            clock.now += 0.01
            return {"host_latency": np.full(count, np.nan)} if clock.now > 1 else {"host_latency": np.full(count, 1.0)}

    with pytest.raises(StageError, match="'x'"):
        run(clock, {"x": Broken()})
    with pytest.raises(InputError, match="no arm"):
        run(clock, {})
