"""Kills of the real command, at named points and at random moments (`make soak`)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest
from faults import POINTS
from faulty import DRIVER, ENVIRONMENT, leftovers, results, write_recipe

pytestmark = pytest.mark.soak
KILLS = 10


def start(*words):
    return subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def finish(recipe, workspace):
    process = start(sys.executable, "-m", "pipeline", "run", recipe, "--workspace", workspace, "-q")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    recipe = write_recipe(folder / "recipe")
    began = time.monotonic()
    finish(recipe, folder)
    return recipe, results(folder), time.monotonic() - began


@pytest.mark.parametrize("point", POINTS)
def test_a_run_killed_at_a_named_point_ends_as_if_nothing_had_happened(whole, tmp_path, point):
    recipe, expected, _ = whole
    process = start(sys.executable, DRIVER, point, "run", recipe, "--workspace", tmp_path, "-q")
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    assert len([name for name in leftovers(tmp_path) if name.endswith(".partial")]) <= 1
    finish(recipe, tmp_path)
    assert results(tmp_path) == expected
    assert leftovers(tmp_path) == []


def test_ten_kills_at_random_moments_end_as_if_nothing_had_happened(whole, tmp_path):
    recipe, expected, seconds = whole
    rng = random.Random(time.time_ns())
    kills = 0
    for kill in range(KILLS):
        process = start(sys.executable, "-m", "pipeline", "run", recipe, "--workspace", tmp_path / str(kill // 2), "-q")
        time.sleep(rng.uniform(0.1, 1.0) * seconds)
        process.kill()
        process.communicate(timeout=60)
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 1
    for number in range(KILLS // 2):
        finish(recipe, tmp_path / str(number))
        assert results(tmp_path / str(number)) == expected
        assert leftovers(tmp_path / str(number)) == []


def test_two_runs_at_once_share_every_stage(whole, tmp_path):
    recipe, expected, _ = whole
    both = [start(sys.executable, "-m", "pipeline", "run", recipe, "--workspace", tmp_path, "-q") for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    outputs = [path.parent.name for path in tmp_path.glob("engines/faults/*/output.json")]
    assert sorted(name.rpartition("-")[0] for name in outputs) == ["build", "export", "freeze", "gate", "measure", "tactics", "train"]
    assert results(tmp_path) == expected
    assert leftovers(tmp_path) == []
