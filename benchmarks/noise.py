"""Simulated latency noise: factors on the time of one inference, median near 1, with a given coefficient of variation (CV).

A machine has one state (clocks, temperature, neighbours), and the arms run on it one at a time: so a process runs over all
inferences in the order in which they happen, whichever arm they belong to. `ar1-own` is the harder exception: each arm has a
process of its own, so that nothing cancels within a round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

TRACE = Path(__file__).parent / "data" / "onnxruntime_trace.npz"
PHI = 0.9
MEAN_DWELL = 500
"""Inferences that a clock state lasts on average (2 s of a 4 ms engine)."""
SPIKE_RATE = 0.01


def white(rng: np.random.Generator, experiments: int, length: int, cv: float) -> np.ndarray:
    return 1 + cv * rng.standard_normal((experiments, length))


def ar1(rng: np.random.Generator, experiments: int, length: int, cv: float) -> np.ndarray:
    steps = rng.standard_normal((length, experiments))
    steps[1:] *= np.sqrt(1 - PHI**2)
    for t in range(1, length):
        steps[t] += PHI * steps[t - 1]
    return 1 + cv * steps.T


def drift(rng: np.random.Generator, experiments: int, length: int, cv: float) -> np.ndarray:
    """A ramp up or down over the whole run with half of the variance, white noise with the other half."""
    slope = rng.choice([-1.0, 1.0], (experiments, 1)) * np.sqrt(12) * np.linspace(-0.5, 0.5, length)
    return 1 + cv * np.sqrt(0.5) * (slope + rng.standard_normal((experiments, length)))


def spikes(rng: np.random.Generator, experiments: int, length: int, cv: float) -> np.ndarray:
    """One inference in a hundred takes much longer; nearly all of the variance is in those."""
    height = 0.95 * cv / np.sqrt(SPIKE_RATE * (1 - SPIKE_RATE))
    hit = rng.random((experiments, length)) < SPIKE_RATE
    return 1 + 0.3 * cv * rng.standard_normal((experiments, length)) + height * hit


def bimodal(rng: np.random.Generator, experiments: int, length: int, cv: float) -> np.ndarray:
    """Two clock states a step of 2 CV apart, switching at random times."""
    switches = rng.random((experiments, length)) < 1 / MEAN_DWELL
    state = (np.cumsum(switches, axis=1) + rng.integers(0, 2, (experiments, 1))) % 2
    return 1 + cv * (2 * state - 1) + 0.2 * cv * rng.standard_normal((experiments, length))


def lognormal(rng: np.random.Generator, experiments: int, length: int, cv: float) -> np.ndarray:
    """A standard log-normal tail above a floor."""
    tail = np.exp(rng.standard_normal((experiments, length)))
    return 1 + cv * (tail - 1) / np.sqrt((np.e - 1) * np.e)


@cache
def trace(name: str) -> np.ndarray:
    with np.load(TRACE) as data:
        found = data[name].astype(float)
    return found / np.median(found)


def replayed(name: str) -> Callable[[np.random.Generator, int, int, float], np.ndarray]:
    """A recorded trace from a random start, its deviations scaled to the CV."""

    def draw(rng: np.random.Generator, experiments: int, length: int, cv: float) -> np.ndarray:
        recorded = trace(name)
        at = (rng.integers(0, len(recorded), (experiments, 1)) + np.arange(length)) % len(recorded)
        return np.maximum(1 + (recorded[at] - 1) * cv / (recorded.std() / recorded.mean()), 0.05)

    return draw


class Process(NamedTuple):
    draw: Callable[[np.random.Generator, int, int, float], np.ndarray]
    """(generator, experiments, inferences, CV) -> factors [experiments, inferences]."""
    own: bool
    """Each arm has a process of its own."""
    text: str


PROCESSES: dict[str, Process] = {
    "white": Process(white, False, "independent, normal"),
    "ar1": Process(ar1, False, "AR(1) 0.9 over consecutive inferences"),
    "ar1-own": Process(ar1, True, "AR(1) 0.9, one per arm: nothing is common to a round (harder than what is promised)"),
    "drift": Process(drift, False, "a ramp over the run, half of the variance"),
    "spikes": Process(spikes, False, "1 % of inferences take up to 10 CV longer"),
    "bimodal": Process(bimodal, False, "two clock states 2 CV apart, 2 s each on average"),
    "lognormal": Process(lognormal, False, "log-normal tail"),
    "trace-quiet": Process(
        replayed("quiet"), False, "recorded: onnxruntime on a virtual machine of two cores with no other work of its own"
    ),
    "trace-loaded": Process(replayed("loaded"), False, "recorded: the same, with a neighbour that loads a core on and off"),
    "trace-crowded": Process(replayed("crowded"), False, "recorded: the same, with four such neighbours"),
}
