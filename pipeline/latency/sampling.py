"""Interleaved sampling: in every round each arm runs one block, in an order drawn anew.

Rounds are close to independent where samples are not, and what changes slowly (clocks, temperature, neighbours) is common to
the arms of a round (Chen & Revels 2016; Kalibera & Jones 2013).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from pipeline.errors import InputError, StageError
from pipeline.latency.plan import Plan, Renewable, Sampler, starts_processes
from pipeline.latency.samples import Samples, Sampling
from pipeline.latency.warmup import warm_up
from pipeline.progress import Progress, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

OVERTIME = 1.5
"""Sampling ends at this multiple of the planned time even if the rounds are not all done (a machine that got slower)."""
LOOKS = 50
"""How often at most `decided` is asked."""
PROBE = 10
"""Inferences of the process that shows what starting one costs."""


class Schedule(NamedTuple):
    """What the warm-up made of a plan: fixed before the first sample counts."""

    inferences: int
    """Inferences per block, the same for all arms, so that a block's quantile has the same small-sample bias in each."""
    rounds: int
    round_s: float
    """Expected time of a round."""
    rewarm: int
    pause_s: float
    settled: dict[str, bool]
    level: Literal["block", "process"]
    group: int = 1
    """Rounds between two starts of the processes."""


def sample(
    arms: Mapping[str, Sampler],
    *,
    shape: str,
    plan: Plan,
    seed: int,
    decided: Callable[[Samples], bool] | None = None,
    progress: Progress = silent,
    clock: Callable[[], float] = time.perf_counter,
    pause: Callable[[float], None] = time.sleep,
) -> Samples:
    """Sample the arms at one shape, interleaved.

    Where a sampler's engine lives in processes of its own (its `level` is `process`), the processes of all arms are started anew
    again and again: what differs from one start to the next enters the interval.

    Args:
        arms: Sampler by arm name, all bound to inputs of the same shape.
        shape: Id of the shape, such as `batch=32`.
        plan: How long and how finely.
        seed: Of the order of arms within rounds.
        decided: Asked from the least number of rounds on; True ends the sampling. Intervals stay valid, see `confidence`.
        progress: Told after each round.
        clock: Seconds; replaced in tests.
        pause: Sleeps seconds; replaced in tests.

    Returns:
        Every sample after the warm-up.

    Raises:
        InputError: no arm.
        StageError: an arm's sampler returned no times, or times that are not positive.
    """
    if not arms:
        raise InputError("nothing to sample: no arm is given", where=shape, hint="name at least one engine")
    schedule = _schedule(arms, plan, clock)
    rng = np.random.default_rng(seed)
    columns = _Columns(tuple(arms), shape)
    facts = Sampling(
        planned_rounds=schedule.rounds,
        rounds=0,
        level=schedule.level,
        group=schedule.group,
        settled=schedule.settled,
        stopped="rounds",
        seed=seed,
    )
    least = plan.rounds * schedule.group
    limit = clock() + max(plan.seconds, schedule.rounds * schedule.round_s) * OVERTIME
    next_look = least
    for done in range(1, schedule.rounds + 1):
        _round(arms, schedule, done - 1, rng, columns, clock, pause)
        facts = replace(facts, rounds=done)
        progress(f"sampling {shape}", done, schedule.rounds)
        if done % schedule.group:  # an observation is a whole group
            continue
        if decided is not None and next_look <= done < schedule.rounds:
            next_look = done + max(1, schedule.rounds // LOOKS)
            if decided(columns.samples(facts)):
                facts = replace(facts, stopped="decided")
                break
        if clock() > limit and done >= least:
            facts = replace(facts, stopped="time limit")
            break
    return columns.samples(facts)


def _round(
    arms: Mapping[str, Sampler],
    schedule: Schedule,
    number: int,
    rng: np.random.Generator,
    columns: _Columns,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> None:
    """One block of every arm, in an order drawn anew; new processes where a group of rounds begins."""
    if schedule.level == "process" and number % schedule.group == 0:
        _renew(arms.values())
    for arm in rng.permutation(len(arms)):
        sampler = arms[columns.arms[arm]]
        pause(schedule.pause_s)
        if schedule.rewarm:
            sampler.block(schedule.rewarm)
        began = clock()
        columns.add(int(arm), number, int(began * 1e9), sampler.block(schedule.inferences))


def _schedule(arms: Mapping[str, Sampler], plan: Plan, clock: Callable[[], float]) -> Schedule:
    return _process_schedule(arms, plan, clock) if any(map(starts_processes, arms.values())) else _block_schedule(arms, plan, clock)


def _block_schedule(arms: Mapping[str, Sampler], plan: Plan, clock: Callable[[], float]) -> Schedule:
    warm = warm_up(arms, plan, clock)
    each_ms = sum(warm.mean_ms.values())
    affordable = int(plan.seconds * 1e3 / (plan.rounds * each_ms))
    count = max(math.ceil(plan.block_ms / max(warm.ms.values())), min(plan.block_samples, affordable))
    round_s = ((count + plan.rewarm) * each_ms + plan.pause_ms * len(arms)) / 1e3
    rounds = max(plan.rounds, int(plan.seconds / round_s))
    return Schedule(count, rounds, round_s, plan.rewarm, plan.pause_ms / 1e3, warm.settled, "block")


def _process_schedule(arms: Mapping[str, Sampler], plan: Plan, clock: Callable[[], float]) -> Schedule:
    """One short process per arm shows what a start and an inference cost.

    Where every arm can be renewed, the live processes alternate short blocks, so that what changes slowly cancels within a round
    as it does for loaded engines; else a block is a whole process.
    """
    starts_s, ms = 0.0, {}
    live = all(isinstance(sampler, Renewable) for sampler in arms.values())
    for name, sampler in arms.items():
        began = clock()
        _renew([sampler])
        ms[name] = max(float(np.mean(values)) for values in sampler.block(PROBE).values())
        starts_s += max(0.0, clock() - began - PROBE * ms[name] / 1e3)
    slowest, each_s = max(ms.values()), sum(ms.values()) / 1e3
    total = max(plan.block_samples, math.ceil(plan.process_block_ms / slowest))
    count = max(plan.block_samples, math.ceil(plan.block_ms / slowest)) if live else total
    group = max(1, round(total / count))
    rewarm = plan.rewarm if live else 0
    launch_s = starts_s + group * (count + rewarm) * each_s
    launches = max(plan.rounds, int(plan.seconds / launch_s))
    return Schedule(count, launches * group, launch_s / group, rewarm, 0.0, dict.fromkeys(arms, True), "process", group)


def _renew(samplers: Iterable[Sampler]) -> None:
    for sampler in samplers:
        if isinstance(sampler, Renewable):
            sampler.renew()


class _Columns:
    """Grows the samples of one shape, block by block."""

    def __init__(self, arms: tuple[str, ...], shape: str) -> None:
        self.arms = arms
        self.shape = shape
        self.metrics: dict[str, int] = {}
        self.blocks: list[tuple[int, int, int, int, int, NDArray[np.float64]]] = []
        self.count = 0

    def add(self, arm: int, round_: int, began: int, times: Mapping[str, NDArray[np.float64]]) -> None:
        for metric, values in times.items():
            ms = np.asarray(values, np.float64)
            if ms.size == 0 or not bool((np.isfinite(ms) & (ms > 0)).all()):
                raise StageError(
                    f"the sampler of arm {self.arms[arm]!r} gave no usable {metric} times", where=self.shape, hint="see the backend's log"
                )
            self.blocks.append((arm, self.metrics.setdefault(metric, len(self.metrics)), round_, self.count, began, ms))
        if not times:
            raise StageError(f"the sampler of arm {self.arms[arm]!r} gave no times", where=self.shape, hint="see the backend's log")
        self.count += 1

    def samples(self, sampling: Sampling) -> Samples:
        sizes = [len(block[5]) for block in self.blocks]

        def spread(column: int, dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
            return np.repeat(np.array([block[column] for block in self.blocks], dtype), sizes)

        return Samples(
            arms=self.arms,
            shapes=(self.shape,),
            metrics=tuple(self.metrics),
            arm=spread(0, np.int16),
            shape=np.zeros(sum(sizes), np.int16),
            metric=spread(1, np.int16),
            round=spread(2, np.int32),
            block=spread(3, np.int32),
            start_ns=spread(4, np.int64),
            ms=np.concatenate([b[5] for b in self.blocks]),
            sampling={self.shape: sampling},
        )
