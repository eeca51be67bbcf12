"""From solved channels to search problems: one per set of channels that may trade places, over all layers that read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from pipeline.pattern import GROUP
from pipeline.sparsity.permutation.follow import Use
from pipeline.sparsity.permutation.spaces import Solution

MOST_ROWS = 4096
"""Rows that the search looks at; more are sampled, and the result is judged on all of them."""


@dataclass
class Problem:
    """Channels in stripes of four, and for each reading layer where its columns of them lie."""

    channels: list[int]
    columns: dict[str, list[np.ndarray]] = field(default_factory=dict)
    """By weight: columns of the channels, in the channels' order; several where a weight reads them several times."""

    def matrix(self, weights: Mapping[str, torch.Tensor]) -> np.ndarray:
        """Magnitudes [rows, channels]: all rows of all readers, each reader scaled to weigh the same."""
        parts: list[np.ndarray] = []
        for name, takes in self.columns.items():
            weight = weights[name].detach().abs().float()
            total = float(weight.sum()) or 1.0
            flat = (weight.movedim(1, -1).reshape(-1, weight.shape[1]) / total).cpu().numpy()
            parts.extend(flat[:, take] for take in takes)
        return np.concatenate(parts)


def sample(matrix: np.ndarray, seed: int) -> np.ndarray:
    """At most MOST_ROWS rows, drawn without replacement."""
    if len(matrix) <= MOST_ROWS:
        return matrix
    rows = np.random.default_rng(seed).choice(len(matrix), MOST_ROWS, replace=False)
    return np.asarray(matrix[np.sort(rows)])


def problems(solution: Solution, uses: Sequence[Use], targets: set[str]) -> tuple[list[Problem], dict[str, tuple[str, str]]]:
    """The problems, and for weights that no problem reads the rule and text that say why.

    Args:
        solution: Solved channels.
        uses: All multiplications of the model.
        targets: Names of the weights that will be masked.
    """
    readers: dict[int, dict[str, np.ndarray]] = defaultdict(dict)
    reasons: dict[str, tuple[str, str]] = {}
    for use in uses:
        if use.weight not in targets or use.reduction is None:
            continue
        own = solution.channel[use.reduction.atoms.ravel()]
        spaces = {solution.space_of[one] for one in own.tolist() if one in solution.space_of}
        for space in spaces:
            readers[space][use.weight] = own
        if not spaces:
            why = next((solution.why[one] for one in own.tolist() if one in solution.why), "blocks of columns that move with their channel")
            reasons[use.weight] = ("SG323", f"its input channels keep their order: {why}")
    found = []
    for space, own in readers.items():
        members = set(solution.spaces[space].channels.tolist())
        problem = _problem(members, own)
        if problem is not None:
            found.append(problem)
            continue
        few = len(members) < 2 * GROUP
        for name in own:
            text = f"{len(members)} channels may trade places" if few else "groups of four mix channels that may not trade places"
            reasons.setdefault(name, ("SG326" if few else "SG325", text))
    read = {name for problem in found for name in problem.columns}
    return found, {name: reason for name, reason in reasons.items() if name not in read}


def _problem(members: set[int], readers: Mapping[str, np.ndarray]) -> Problem | None:
    stripes = {name: _stripes(members, own) for name, own in readers.items()}
    common = set.intersection(*(set(one) for one in stripes.values()))
    first = next(iter(stripes.values()))
    ordered = sorted(common, key=lambda stripe: int(first[stripe][0][0]))
    if len(ordered) < 2:
        return None
    name, own = next(iter(readers.items()))
    channels = [int(own[place]) for stripe in ordered for place in stripes[name][stripe][0]]
    problem = Problem(channels)
    for name, own in readers.items():
        repeats = min(len(stripes[name][stripe]) for stripe in ordered)
        takes = []
        for repeat in range(repeats):
            place = {int(own[at]): int(at) for stripe in ordered for at in stripes[name][stripe][repeat]}
            takes.append(np.array([place[one] for one in channels]))
        problem.columns[name] = takes
    return problem


def _stripes(members: set[int], own: np.ndarray) -> dict[frozenset[int], list[np.ndarray]]:
    """Aligned groups of four columns that hold four different channels of the set, by those channels."""
    found: dict[frozenset[int], list[np.ndarray]] = defaultdict(list)
    for start in range(0, len(own) - GROUP + 1, GROUP):
        places = np.arange(start, start + GROUP)
        held = frozenset(int(one) for one in own[places])
        if len(held) == GROUP and held <= members:
            found[held].append(places)
    return found
