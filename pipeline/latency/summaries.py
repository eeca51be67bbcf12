"""Estimates with intervals, from samples: absolute times of one arm, and ratios of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.latency import confidence, tails
from pipeline.latency.rounds import CENTRES, log_ratios, per_round
from pipeline.latency.samples import Samples
from pipeline.records.measurement import Estimate, Ratio, Timing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = tuple[NDArray[np.int32], NDArray[np.float64]]

UNBOUNDED = 1e6
"""A half-width (of a log ratio, or in ms) from which on a bound says nothing."""
QUANTITIES = (*CENTRES, *tails.QUANTILES)


class Shortfall(NamedTuple):
    """Why there is no estimate: what there is, and what it takes."""

    have: float
    need: float
    of: str
    """`rounds` or `effective samples`."""

    def __str__(self) -> str:
        factor = self.need / self.have if self.have else math.inf
        more = f"; measure about {factor:.2g} times as long" if math.isfinite(factor) else ""
        return f"{self.have:.0f} {self.of} where {self.need:.0f} are needed{more}"


def ratio(samples: Samples, arm: str, over: str, *, shape: str, metric: str, quantity: str, alpha: float) -> Estimate | Shortfall:
    """Latency of one arm over another: below 1 is faster. Each bound holds with 1 - alpha at any stop.

    Args:
        samples: Interleaved samples of both arms.
        arm: Numerator.
        over: Denominator.
        shape: Id of the shape.
        metric: `gpu_compute`, `host_latency`, ...
        quantity: `p50`, `mean`, `p90`, `p99` or `p99.9`.
        alpha: Error probability of each bound; the record's confidence is 1 - 2 alpha.
    """
    columns = samples.of(arm, shape, metric), samples.of(over, shape, metric)
    units = _units(samples, shape)
    if quantity in CENTRES:
        found = _centre(*log_ratios(*columns, quantity), units, alpha)
    else:
        found = _tail(columns, quantity, units, alpha)
    return found if isinstance(found, Shortfall) else _mapped(found, math.exp)


def between_builds(
    samples: Samples, pairs: Sequence[tuple[str, str]], *, shape: str, metric: str, quantity: str, alpha: float
) -> Estimate | Shortfall:
    """Ratio that holds for what a recipe builds, not for one engine: the spread between builds is in the interval.

    The builds' log ratios are averaged. Student's interval over them (which already holds their sampling error) and the mean
    sampling half-width, valid at any stop, are added in quadrature: wider than either, so the error stays below alpha.

    Args:
        samples: Of all builds, interleaved.
        pairs: One (arm, over) per build, at least 2.
        shape: As in `ratio`.
        metric: As in `ratio`.
        quantity: As in `ratio`.
        alpha: As in `ratio`.
    """
    found = [ratio(samples, arm, over, shape=shape, metric=metric, quantity=quantity, alpha=alpha) for arm, over in pairs]
    short = next((one for one in found if isinstance(one, Shortfall)), None)
    if short is not None:
        return short
    estimates = [one for one in found if isinstance(one, Estimate)]
    if len(estimates) < 2:
        return Shortfall(len(estimates), 3, "builds")
    logs = np.log([one.value for one in estimates])
    student = confidence.student_quantile(alpha, len(logs) - 1)
    between = student * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    within = max(math.inf if one.high is None else math.log(one.high / one.value) for one in estimates)
    pooled = _interval(float(logs.mean()), math.hypot(between, within), alpha, len(logs))
    return _mapped(pooled, math.exp)


def absolute(samples: Samples, arm: str, *, shape: str, metric: str, quantity: str, alpha: float) -> Estimate | Shortfall:
    """Latency of one arm in ms, with an interval as in `ratio`."""
    column = samples.of(arm, shape, metric)
    units = _units(samples, shape)
    if quantity in CENTRES:
        return _centre(*per_round(*column, quantity), units, alpha)
    found = _tail((column,), quantity, units, alpha)
    return found if isinstance(found, Shortfall) else _mapped(found, math.exp)


def timings(samples: Samples, inputs: Mapping[str, Mapping[str, list[int]]], alpha: float) -> list[Timing]:
    """Absolute figures of every arm, shape and metric; a quantile with too few samples is left out.

    Args:
        samples: Of any number of shapes.
        inputs: By shape id, the input shapes that really ran.
        alpha: As in `ratio`.
    """
    found = []
    for arm, shape, metric in samples.present():
        rounds, ms = samples.of(arm, shape, metric)
        estimates = {q: absolute(samples, arm, shape=shape, metric=metric, quantity=q, alpha=alpha) for q in QUANTITIES}
        found.append(
            Timing(
                arm=arm,
                shape=shape,
                inputs={name: list(dims) for name, dims in inputs.get(shape, {}).items()},
                metric=metric,
                samples=len(ms),
                rounds=len(np.unique(rounds)),
                quantiles={q: estimate for q, estimate in estimates.items() if isinstance(estimate, Estimate)},
            )
        )
    return found


def ratios(samples: Samples, pairs: Sequence[tuple[str, str]], controls: AbstractSet[tuple[str, ...]], alpha: float) -> list[Ratio]:
    """Ratios of every pair (arm, over) at every shape, metric and quantile that has enough samples; controls are labelled."""
    present = samples.present()
    found = []
    for arm, over in pairs:
        control = (arm, over) in controls or (over, arm) in controls
        for shape, metric in _shared(present, arm, over):
            for quantity in QUANTITIES:
                estimate = ratio(samples, arm, over, shape=shape, metric=metric, quantity=quantity, alpha=alpha)
                if isinstance(estimate, Estimate):
                    found.append(Ratio(arm=arm, over=over, shape=shape, metric=metric, quantile=quantity, ratio=estimate, control=control))
    return found


def _shared(present: Iterable[tuple[str, str, str]], arm: str, over: str) -> list[tuple[str, str]]:
    keys = set(present)
    return [(shape, metric) for name, shape, metric in present if name == arm and (over, shape, metric) in keys]


class _Units(NamedTuple):
    """What one observation is: a round, or the rounds between two starts of the processes."""

    group: int
    planned: int

    def of(self, rounds: NDArray[np.int32]) -> NDArray[np.int32]:
        return rounds // self.group


def _units(samples: Samples, shape: str) -> _Units:
    """Samples that do not say what was planned were not stopped by their values, so all of them are the plan."""
    facts = samples.sampling.get(shape)
    group = max(1, facts.group) if facts else 1
    where = samples.shape == samples.shapes.index(shape) if shape in samples.shapes else np.zeros(0, bool)
    present = len(np.unique(samples.round[where] // group)) if where.any() else 0
    return _Units(group, max(math.ceil(facts.planned_rounds / group) if facts else 0, present))


def _centre(rounds: NDArray[np.int32], figures: NDArray[np.float64], units: _Units, alpha: float) -> Estimate | Shortfall:
    """Mean of one figure per round; rounds of one unit are averaged first."""
    _, first = np.unique(units.of(rounds), return_index=True)
    if len(first) < confidence.LEAST_ROUNDS:
        return Shortfall(len(first), confidence.LEAST_ROUNDS, "rounds")
    observations = np.add.reduceat(figures, first) / np.diff([*first, len(figures)])
    found = confidence.centre(observations, units.planned, alpha)
    return _interval(float(found.value), float(found.half_width), alpha, float(found.effective_rounds))


def _tail(columns: Sequence[Column], quantity: str, units: _Units, alpha: float) -> Estimate | Shortfall:
    """Log of a pooled quantile, or of the ratio of two, with the interval of its bootstrap error."""
    of_units = [units.of(rounds) for rounds, _ in columns]
    names = np.unique(of_units[0])
    for unit in of_units[1:]:
        names = np.intersect1d(names, unit)
    if len(names) < confidence.LEAST_ROUNDS:
        return Shortfall(len(names), confidence.LEAST_ROUNDS, "rounds")
    batches = tails.batches_of(len(names))
    weights = tails.draws(batches)
    found = []
    for unit, (_, ms) in zip(of_units, columns, strict=True):
        position = np.minimum(np.searchsorted(names, unit), len(names) - 1)
        inside = names[position] == unit
        found.append(tails.pooled(position[inside] * batches // len(names), ms[inside], tails.QUANTILES[quantity], weights))
    effective = min(part.effective for part in found)
    if effective < tails.LEAST_EFFECTIVE[quantity]:
        return Shortfall(effective, tails.LEAST_EFFECTIVE[quantity], "effective samples")
    signs = (1.0, -1.0)[: len(found)]
    value = sum(sign * math.log(part.value) for sign, part in zip(signs, found, strict=True))
    spread = sum(sign * np.log(part.replicates) for sign, part in zip(signs, found, strict=True))
    half = confidence.multiplier(len(names), units.planned, batches, alpha) * float(np.std(spread, ddof=1))
    return _interval(value, half, alpha, effective)


def _interval(value: float, half_width: float, alpha: float, n: float) -> Estimate:
    """An estimate whose bounds are absent where nothing can be said yet (a first look, very early)."""
    known = half_width < UNBOUNDED
    return Estimate(
        value=value,
        low=value - half_width if known else None,
        high=value + half_width if known else None,
        confidence=1 - 2 * alpha,
        n=int(n),
    )


def _mapped(estimate: Estimate, function: Callable[[float], float]) -> Estimate:
    """The estimate on another scale, by an increasing function."""
    low, high = estimate.low, estimate.high
    return Estimate(
        value=function(estimate.value),
        low=None if low is None else _finite(function, low),
        high=None if high is None else _finite(function, high),
        confidence=estimate.confidence,
        n=estimate.n,
    )


def _finite(function: Callable[[float], float], value: float) -> float | None:
    try:
        return function(value)
    except OverflowError:
        return None
