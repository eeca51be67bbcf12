"""The gate under test and the gates that people use, each deciding many experiments at once: 1 pass, -1 fail, 0 undecided."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pipeline.latency.confidence import centre, student_quantile

ARMS = 3
"""Judged arm, reference, reference again."""
LOOKS = 50
LEAST_ROUNDS = 20


class Design(NamedTuple):
    """How an experiment is sampled."""

    rounds: int
    block: int
    rewarm: int
    launch_cv: float = 0.0
    """Spread of a whole process: what differs from one start to the next."""
    group: int = 1
    """Rounds between two starts: one observation."""
    early: bool = True


class Experiments(NamedTuple):
    """Samples of many experiments with arms of equal speed; a ratio is applied by the gates."""

    logs: np.ndarray
    """Log of the block median, mean over a group of rounds [experiments, observations, arms]."""
    samples: np.ndarray
    """Interleaved samples of arm and reference [experiments, 2, n]."""
    sequential: np.ndarray
    """Samples of arm and reference, one measured after the other [experiments, 2, n]."""
    runs: np.ndarray
    """Samples of three runs a side, alternating [experiments, 2, 3, n]."""


def draw(process, rng: np.random.Generator, count: int, cv: float, design: Design) -> Experiments:
    """Simulate experiments of a process."""
    per_arm = design.rounds * (design.block + design.rewarm)
    if process.own:
        arms = np.stack([process.draw(rng, count, per_arm, cv) for _ in range(ARMS)], axis=1)
        blocks = arms.reshape(count, ARMS, design.rounds, -1).transpose(0, 2, 1, 3)
        halves, sixths = arms[:, :2], arms[:, :2, : per_arm // 3 * 3].reshape(count, 2, 3, -1)
    else:
        time = process.draw(rng, count, ARMS * per_arm, cv)
        blocks = time.reshape(count, design.rounds, ARMS, -1)
        order = rng.permuted(np.broadcast_to(np.arange(ARMS), (count, design.rounds, ARMS)), axis=2)
        blocks = np.take_along_axis(blocks, order[..., None], axis=2)
        length = ARMS * per_arm
        halves = time[:, : length // 2 * 2].reshape(count, 2, -1)
        sixths = time[:, : length // 6 * 6].reshape(count, 3, 2, -1).transpose(0, 2, 1, 3)
    blocks = blocks[..., design.rewarm :]
    logs = np.log(median(blocks))
    if design.launch_cv:
        starts = design.launch_cv * rng.standard_normal((count, design.rounds // design.group, ARMS))
        blocks, logs = blocks * np.exp(np.repeat(starts, design.group, axis=1))[..., None], logs + np.repeat(starts, design.group, axis=1)
    logs = logs.reshape(count, -1, design.group, ARMS).mean(axis=2)
    samples = blocks[:, :, :2].transpose(0, 2, 1, 3).reshape(count, 2, -1)
    return Experiments(logs, samples, halves, sixths)


def median(values: np.ndarray) -> np.ndarray:
    """Over the last axis; a sort is several times faster than np.median for many short rows."""
    ordered = np.sort(values, axis=-1)
    n = values.shape[-1]
    return (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2


def looks(design: Design) -> list[int]:
    """Numbers of observations at which sampling may end."""
    most = design.rounds // design.group
    early = range(LEAST_ROUNDS, most, max(1, most // LOOKS)) if design.early else ()
    return [*early, most]


class Decision(NamedTuple):
    outcome: np.ndarray
    rounds: np.ndarray
    """Rounds used [experiments]."""
    needed: np.ndarray
    """How many times as long to measure, of the undecided ones; 1 for the others."""


def alone(found: Experiments, ratio: float, budget: float, alpha: float, design: Design) -> np.ndarray:
    """The gate's interval without its A/A control: what the statistics promise by themselves."""
    rule = found.logs[..., 0] - found.logs[..., 1] + math.log(ratio)
    outcome = np.zeros(len(rule), int)
    for n in looks(design):
        open_ = np.flatnonzero(outcome == 0)
        value = centre(rule[open_, :n], looks(design)[-1], alpha)
        outcome[open_] = against(value.value, value.half_width, budget)
    return outcome


def ours(found: Experiments, ratio: float, budget: float, alpha: float, design: Design) -> Decision:
    """The gate of pipeline.latency and pipeline.verdict with its A/A control, stopping early."""
    rule, same = found.logs[..., 0] - found.logs[..., 1] + math.log(ratio), found.logs[..., 2] - found.logs[..., 1]
    planned = looks(design)[-1]
    outcome, used = np.zeros(len(rule), int), np.full(len(rule), planned)
    needed = np.ones(len(rule))
    for n in looks(design):
        open_ = np.flatnonzero(outcome == 0)
        now, factor = decide(rule[open_, :n], same[open_, :n], planned, budget, alpha)
        outcome[open_] = now
        used[open_[now != 0]] = n
        needed[open_] = np.where(now == 0, factor, 1.0)
    return Decision(outcome, used, needed)


def decide(rule: np.ndarray, same: np.ndarray, planned: int, budget: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """One look: log ratios [experiments, n] of the rule and of the A/A pair -> outcome, and the time that would decide.

    The same arithmetic as verdict.latency_rule and verdict.control; tests/latency holds the two equal.
    """
    a, b = centre(rule, planned, alpha), centre(same, planned, alpha)
    farther = np.maximum(b.value + b.half_width, b.half_width - b.value)
    sound = np.abs(b.value) <= b.half_width
    gap = math.log(budget) - a.value
    passes = sound & (a.half_width + farther < gap)
    fails = sound & (a.half_width + farther < -gap)
    with np.errstate(divide="ignore"):
        factor = ((a.half_width + b.half_width) / np.abs(gap)) ** 2
    return passes.astype(int) - fails.astype(int), factor


def two_medians(found: Experiments, ratio: float, budget: float) -> np.ndarray:
    """Median of one run over median of another, against the threshold."""
    medians = median(found.sequential)
    return np.where(ratio * medians[:, 0] / medians[:, 1] < budget, 1, -1)


def welch(found: Experiments, ratio: float, budget: float, alpha: float) -> np.ndarray:
    """Welch's interval on the log medians of three runs a side."""
    runs = np.log(median(found.runs))
    left, right = runs[:, 0] + math.log(ratio), runs[:, 1]
    va, vb = left.var(axis=1, ddof=1) / 3, right.var(axis=1, ddof=1) / 3
    freedom = np.maximum(1, np.floor((va + vb) ** 2 / (va**2 / 2 + vb**2 / 2))).astype(int)
    half = np.array([student_quantile(alpha, int(f)) for f in freedom]) * np.sqrt(va + vb)
    return against(left.mean(axis=1) - right.mean(axis=1), half, budget)


def mann_whitney(found: Experiments, ratio: float, budget: float, alpha: float) -> np.ndarray:
    """Mann & Whitney's test of the samples, scaled to the budget, as if they were independent; normal law."""
    n = found.samples.shape[-1]
    both = np.concatenate([found.samples[:, 0] * (ratio / budget), found.samples[:, 1]], axis=1)
    first = np.argsort(both, axis=1) < n
    ranks = (first * np.arange(1, 2 * n + 1)).sum(axis=1)
    z = (ranks - n * (n + 1) / 2 - n * n / 2) / math.sqrt(n * n * (2 * n + 1) / 12)
    critical = student_quantile(alpha, 10**6)
    return np.where(z < -critical, 1, np.where(z > critical, -1, 0))


def peeking(found: Experiments, ratio: float, budget: float, alpha: float, design: Design) -> np.ndarray:
    """A plain Student interval of the rounds, looked at again and again until it decides."""
    rule = found.logs[..., 0] - found.logs[..., 1] + math.log(ratio)
    outcome = np.zeros(len(rule), int)
    for n in looks(design):
        open_ = np.flatnonzero(outcome == 0)
        part = rule[open_, :n]
        half = student_quantile(alpha, n - 1) * part.std(axis=1, ddof=1) / math.sqrt(n)
        outcome[open_] = against(part.mean(axis=1), half, budget)
    return outcome


def against(value: np.ndarray, half: np.ndarray, budget: float) -> np.ndarray:
    limit = math.log(budget)
    return np.where(value + half < limit, 1, np.where(value - half > limit, -1, 0))
