"""Rung 7: do a layer's ONNX nodes, with their reformats, take less time in one arm than in another?

Arms fuse differently, so single engine layers are not comparable. Engine layers of both arms are joined into the smallest
groups that hold the same ONNX nodes on both sides; a reformat counts to the layer that it feeds or drains. A group's time in
one profiling pass is the sum over its layers; the ratio's interval is distribution-free (Mann-Whitney: order statistics of
all pairwise ratios; Hodges & Lehmann 1963) and exact for few passes. The intervals of a shape's groups hold together
(Bonferroni): among a hundred layers none should read faster by chance, which takes 7 passes in each arm.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import comb

import msgspec

from pipeline.records.measurement import Estimate, LayerTime
from pipeline.verdict.matching import components, reformatted

CONFIDENCE = 0.9
"""Two-sided, over all groups of a shape together: each end of any of the intervals is wrong with at most 5 %."""

MYELIN = re.compile(r"\{ForeignNode\[|^__myl|^__mye")
"""Engine layers whose inner kernels a layer profile does not tell apart."""


class GroupTime(msgspec.Struct, frozen=True, kw_only=True):
    """The same ONNX nodes in two arms."""

    shape: str
    nodes: frozenset[str]
    arm_layers: tuple[str, ...]
    over_layers: tuple[str, ...]
    ratio: Estimate | None
    """Time of the arm over time of the other; None where passes are too few."""
    passes: tuple[int, int]
    passes_needed: int
    """In each arm, for an interval at this confidence to exist."""
    myelin: bool
    """A Myelin region is among the layers: its inside is not told apart."""


def compare(
    times: Sequence[LayerTime], *, arm: str, over: str, nodes: Mapping[str, Mapping[str, frozenset[str]]], together: bool = True
) -> list[GroupTime]:
    """Groups of ONNX nodes that both arms hold, at every shape at which both were profiled.

    Args:
        times: Layer times of a measurement.
        arm: The arm in the numerator.
        over: The arm in the denominator.
        nodes: By arm, engine layer name -> ONNX nodes, for layers whose times name no nodes.
        together: Whether all intervals of a shape hold together, or each for itself.
    """
    groups = []
    for shape in dict.fromkeys(time.shape for time in times):
        mine, theirs = ([t for t in times if t.arm == name and t.shape == shape] for name in (arm, over))
        if mine and theirs:
            groups += _groups_at(shape, _with_nodes(mine, nodes.get(arm, {})), _with_nodes(theirs, nodes.get(over, {})), together)
    return groups


_Named = tuple[LayerTime, frozenset[str]]


def _with_nodes(times: list[LayerTime], known: Mapping[str, frozenset[str]]) -> list[_Named]:
    """Each layer time with its ONNX nodes; a reformat has those of its layer."""
    named = {t.layer: frozenset(t.onnx_nodes) or known.get(t.layer, frozenset()) for t in times}
    return [(t, named[t.layer] or named.get(reformatted(t.layer), frozenset())) for t in times]


def _groups_at(shape: str, mine: list[_Named], theirs: list[_Named], together: bool) -> list[GroupTime]:
    root = components([nodes for _, nodes in (*mine, *theirs) if nodes])
    members: dict[str, tuple[list[LayerTime], list[LayerTime]]] = defaultdict(lambda: ([], []))
    held: dict[str, set[str]] = defaultdict(set)
    for side, named in enumerate((mine, theirs)):
        for time, nodes in named:
            if nodes:
                key = root[next(iter(nodes))]
                members[key][side].append(time)
                held[key] |= nodes
    both = {key: sides for key, sides in members.items() if all(sides)}
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(both) if together else 1)
    return [_group(shape, frozenset(held[key]), a, b, confidence) for key, (a, b) in both.items()]


def _group(shape: str, nodes: frozenset[str], mine: list[LayerTime], theirs: list[LayerTime], confidence: float) -> GroupTime:
    a, b = _per_pass(mine), _per_pass(theirs)
    return GroupTime(
        shape=shape,
        nodes=nodes,
        arm_layers=tuple(t.layer for t in mine),
        over_layers=tuple(t.layer for t in theirs),
        ratio=ratio_interval(a, b, confidence),
        passes=(len(a), len(b)),
        passes_needed=passes_needed(confidence),
        myelin=any(MYELIN.search(t.layer) for t in (*mine, *theirs)),
    )


def _per_pass(times: list[LayerTime]) -> list[float]:
    """Sum over the layers in each pass that all of them have."""
    return [sum(column) for column in zip(*(t.passes_ms for t in times), strict=False)]


def ratio_interval(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """Median of all a/b with a distribution-free interval; None where the samples cannot reach the confidence, or a time is 0.

    >>> ratio_interval([8, 8, 9], [10, 10, 10])
    Estimate(value=0.8, low=0.8, high=0.9, confidence=0.9, n=3)
    >>> ratio_interval([8, 8], [10, 10]) is None
    True
    """
    if not a or not b or min(*a, *b) <= 0:
        return None
    cut = _cut(len(a), len(b), confidence)
    if cut is None:
        return None
    ratios = sorted(x / y for x in a for y in b)
    middle = len(ratios) // 2
    value = ratios[middle] if len(ratios) % 2 else (ratios[middle - 1] + ratios[middle]) / 2
    return Estimate(value=value, low=ratios[cut], high=ratios[-1 - cut], confidence=confidence, n=min(len(a), len(b)))


@lru_cache(maxsize=64)
def passes_needed(confidence: float) -> int:
    """Least number of passes in each arm for an interval at this confidence to exist.

    >>> passes_needed(0.9), passes_needed(1 - 0.1 / 7), passes_needed(1 - 0.1 / 100)
    (3, 5, 7)
    """
    return next(n for n in range(1, 64) if 1 / comb(2 * n, n) <= (1 - confidence) / 2 + 1e-12)


@lru_cache(maxsize=64)
def _cut(n: int, m: int, confidence: float) -> int | None:
    """How many pairwise ratios may be left out at each end: the largest c with P(U <= c) <= (1 - confidence) / 2 under no difference.

    None where even the outermost ratio would miss more often.
    """
    ways = _ways(n, m)
    tail, total, allowed = 0, comb(n + m, n), (1 - confidence) / 2 + 1e-12
    cut = None
    for u, count in enumerate(ways):
        tail += count
        if tail / total > allowed:
            break
        cut = u
    return cut


def _ways(n: int, m: int) -> list[int]:
    """Orderings of n and m values with Mann-Whitney statistic u, for u = 0..n*m: coefficients of the Gaussian binomial."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):
            ways[u] += ways[u - i]
    return ways
