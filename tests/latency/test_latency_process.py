"""Arms in processes of their own: started anew in every round, alive or one shot, and clear about what went wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from one_sample_blocks import one_sample_blocks

from pipeline.errors import StageError
from pipeline.latency import Plan, Sampling, command_sampler, ratio, sample

LIVE = """
import json, os, random, sys
level = float(sys.argv[1]) * (1 + 0.02 * random.random())
for line in sys.stdin:
    count = int(line)
    times = {"host_latency": [level + random.random() * 0.01 for _ in range(count)], "pid": [os.getpid() / 1e9] * count}
    print(json.dumps(times), flush=True)
"""
ONE_SHOT = """
import json, random, sys
print("a banner")
print(json.dumps({"host_latency": [float(sys.argv[1]) + random.random() * 0.01 for _ in range(int(sys.argv[2]))]}))
"""


def live(level):
    return command_sampler([sys.executable, "-c", LIVE, str(level)], timeout_s=30)


def test_a_live_process_answers_many_blocks_and_is_renewed():
    sampler = live(1.0)
    try:
        first, second = sampler.block(5), sampler.block(3)
        assert len(first["host_latency"]) == 5
        assert first["pid"][0] == second["pid"][0]
        sampler.renew()
        assert sampler.block(2)["pid"][0] != first["pid"][0]
    finally:
        sampler.close()


def test_a_one_shot_command_gets_its_count():
    sampler = command_sampler([sys.executable, "-c", ONE_SHOT, "2.0", "{count}"])
    assert len(sampler.block(7)["host_latency"]) == 7
    assert not hasattr(sampler, "renew")


def test_processes_are_interleaved_and_started_anew():
    arms = {"a": live(1.0), "b": live(1.2), "a@again": live(1.0)}
    try:
        plan = Plan(seconds=0.5, rounds=8, block_ms=9, process_block_ms=36)
        samples = sample(arms, shape="batch=1", plan=plan, seed=0)
    finally:
        for sampler in arms.values():
            sampler.close()
    facts = samples.sampling["batch=1"]
    assert facts.level == "process"
    assert facts.group > 1
    assert facts.rounds >= 8 * facts.group
    rounds, pids = samples.of("a", "batch=1", "pid")
    by_launch = {launch: set(pids[rounds // facts.group == launch]) for launch in set(rounds // facts.group)}
    assert all(len(found) == 1 for found in by_launch.values())
    assert len(set.union(*by_launch.values())) == len(by_launch)
    found = ratio(samples, "b", "a", shape="batch=1", metric="host_latency", quantity="p50", alpha=0.05)
    assert 1.1 < found.value < 1.3  # both sleep a little longer than they say
    assert found.n <= facts.rounds // facts.group


def test_what_starts_share_is_one_observation():
    """Rounds between two starts are not independent: counting them as such would make the interval too narrow."""
    rng = np.random.default_rng(1)
    launches, group = 20, 25
    effect = np.repeat(0.01 * rng.standard_normal((launches, 2)), group, axis=0)
    logs = effect + 0.001 * rng.standard_normal((launches * group, 2))
    sampling = Sampling(planned_rounds=launches * group, rounds=launches * group, group=group)
    samples = one_sample_blocks(np.exp(logs), ("a", "b"), shape="s", metric="m", sampling=sampling)
    grouped = ratio(samples, "a", "b", shape="s", metric="m", quantity="p50", alpha=0.05)
    assert grouped.n <= launches
    truth = 0.01 * np.sqrt(2 / launches)
    assert np.log(grouped.high / grouped.value) > 1.5 * truth


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/no/such/program"], "cannot be started"),
        (["/no/such/program", "{count}"], "cannot be started"),
        ([sys.executable, "-c", "raise SystemExit('out of memory')"], "out of memory"),
        ([sys.executable, "-c", "import sys; sys.exit('bad model')", "{count}"], "bad model"),
        ([sys.executable, "-c", "print('hello')"], "printed no times"),
        ([sys.executable, "-c", "print('hello')", "{count}"], "printed no times"),
        ([sys.executable, "-c", "import time; time.sleep(30)"], "gave no answer"),
        ([sys.executable, "-c", "import time; time.sleep(30)", "{count}"], "ran longer"),
    ],
)
def test_a_command_that_fails_is_named_with_what_it_said(command, words):
    sampler = command_sampler(command, timeout_s=1.0)
    with pytest.raises(StageError, match=words):
        sampler.block(3)
    sampler.close()
