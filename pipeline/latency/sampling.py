"""Interleaved sampling: in every round each arm runs one block, in an order drawn anew.

Rounds are close to independent where samples are not, and what changes slowly (clocks, temperature, neighbours) is common to
the arms of a round (Chen & Revels 2016; Kalibera & Jones 2013).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import InputError, StageError
from pipeline.latency.plan import Plan, Sampler
from pipeline.latency.samples import Samples, Sampling
from pipeline.latency.warmup import warm_up
from pipeline.progress import Progress, silent

if TYPE_CHECKING:
    from numpy.typing import NDArray

OVERTIME = 1.5
"""Sampling ends at this multiple of the planned time even if the rounds are not all done (a machine that got slower)."""
LOOKS = 50
"""How often at most `decided` is asked."""


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
    rng = np.random.default_rng(seed)
    warm = warm_up(arms, plan, clock)
    count = samples_per_block(warm.ms, plan)
    planned = planned_rounds(warm.ms, count, plan)
    columns = _Columns(tuple(arms), shape)
    stopped, done, start = "rounds", 0, clock()
    next_look = plan.rounds
    limit = max(plan.seconds, planned * _round_seconds(warm.ms, count, plan)) * OVERTIME
    while done < planned:
        for arm in rng.permutation(len(arms)):
            name = columns.arms[arm]
            pause(plan.pause_ms / 1e3)
            if plan.rewarm:
                arms[name].block(plan.rewarm)
            began = clock()
            columns.add(int(arm), done, int(began * 1e9), arms[name].block(count))
        done += 1
        progress(f"sampling {shape}", done, planned)
        if decided is not None and next_look <= done < planned:
            next_look = done + max(1, planned // LOOKS)
            if decided(columns.samples(Sampling(planned_rounds=planned, rounds=done, settled=warm.settled, seed=seed))):
                stopped = "decided"
                break
        if clock() - start > limit and done >= plan.rounds:
            stopped = "time limit"
            break
    return columns.samples(Sampling(planned_rounds=planned, rounds=done, settled=warm.settled, stopped=stopped, seed=seed))


def samples_per_block(ms: Mapping[str, float], plan: Plan) -> int:
    """One count for all arms, so that a block's quantile has the same small-sample bias in each and the ratio has none."""
    slowest = max(ms.values())
    count = max(1, math.ceil(plan.block_ms / slowest))
    affordable = plan.seconds * 1e3 / (plan.rounds * sum(ms.values()))
    return max(count, min(plan.block_samples, int(affordable)))


def planned_rounds(ms: Mapping[str, float], count: int, plan: Plan) -> int:
    """Rounds that fit the planned time, at least `plan.rounds`."""
    return max(plan.rounds, int(plan.seconds / _round_seconds(ms, count, plan)))


def _round_seconds(ms: Mapping[str, float], count: int, plan: Plan) -> float:
    return ((count + plan.rewarm) * sum(ms.values()) + plan.pause_ms * len(ms)) / 1e3


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
