"""The worst slice under a budget: every slice must pass for the rule to pass; Holm's correction guards a failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pipeline.quality.compare import Drop, loss, p_above

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SliceDrop(NamedTuple):
    """One slice's loss, and whether it is over the budget after Holm's correction."""

    name: str
    drop: Drop
    within: bool
    """Its upper bound is below the budget."""
    over: bool
    """It exceeds the budget, at level alpha for all slices together."""


def worst_slice(
    reference: NDArray[np.float64],
    candidate: NDArray[np.float64],
    members: Mapping[str, NDArray[np.bool_]],
    metric: str,
    *,
    budget: float,
    alpha: float,
) -> list[SliceDrop]:
    """Loss in every slice, largest first.

    "All slices are within the budget" is claimed when each one's own test at alpha says so (intersection-union: no correction
    is due). "Some slice is over it" is claimed by Holm's step-down procedure (Scandinavian J. Statistics 6, 1979), so that the
    probability of accusing any slice wrongly stays at alpha however many there are.

    Args:
        reference: Score per sample [n].
        candidate: Score per sample [n].
        members: By slice, which samples are in it [n]; slices may overlap (several axes).
        metric: Name in `METRICS`.
        budget: Largest loss allowed in a slice.
        alpha: Error probability.
    """
    drops = {name: loss(reference[inside], candidate[inside], metric, alpha, budget) for name, inside in members.items()}
    over = holm([p_above(drop, metric, budget) for drop in drops.values()], alpha)
    found = [
        SliceDrop(name, drop, drop.high is not None and drop.high < budget, rejected)
        for (name, drop), rejected in zip(drops.items(), over, strict=True)
    ]
    return sorted(found, key=lambda item: (-item.drop.value, item.name))


def holm(p_values: list[float], alpha: float) -> list[bool]:
    """Which hypotheses are rejected with the family's error at most alpha."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        if p_values[index] > alpha / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected
