"""Solving the statements on channels: which sets of channels may trade places, and what follows them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from pipeline.sparsity.permutation.channels import Array, Channels, ParameterGroup, Relation


@dataclass
class Space:
    """Channels that may trade places freely: each is used in the same ways as every other."""

    channels: Array
    """int64, sorted."""


@dataclass
class Solution:
    """Channels by atom, the spaces, and why the rest is fixed."""

    channel: Array
    """[atoms]: the channel of each atom."""
    spaces: list[Space]
    why: dict[int, str]
    """By channel that is fixed."""
    parameters: list[ParameterGroup]
    relations: list[Relation]
    """With channels in place of atoms."""
    space_of: dict[int, int] = field(default_factory=dict)
    """By channel that is free."""


def solve(channels: Channels) -> Solution:
    """Solve all statements together.

    Two channels may trade places if they occur equally often in the same tensors' dimensions and parts of them, and so do the
    blocks that move with them. Occurrences are compared by sums of random 64-bit numbers, one per dimension or part.
    """
    _fix_conflicting_views(channels)
    channel = _components(channels)
    why = _fixed(channels, channel)
    relations = [Relation(channel[r.parents], r.sub, channel[r.children]) for r in channels.relations]
    children = _fix_ambiguous(relations, why)
    signature = _signatures(channels, channel, relations)
    _spread_fixed(relations, why)
    by_signature: dict[int, list[int]] = defaultdict(list)
    for one in np.unique(channel).tolist():
        if one not in why and one not in children:
            by_signature[int(signature[one])].append(one)
    spaces = [Space(np.array(members, dtype=np.int64)) for members in by_signature.values() if len(members) > 1]
    solution = Solution(channel, spaces, why, list(channels.parameters.values()), relations)
    solution.space_of = {int(one): index for index, space in enumerate(spaces) for one in space.channels}
    return solution


def _components(channels: Channels) -> Array:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if not channels.edges:
        return np.arange(channels.count, dtype=np.int64)
    one = np.concatenate([edge[0] for edge in channels.edges])
    other = np.concatenate([edge[1] for edge in channels.edges])
    graph = coo_matrix((np.ones(one.size, dtype=np.int8), (one, other)), shape=(channels.count, channels.count))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _fix_conflicting_views(channels: Channels) -> None:
    """A parameter whose dimension is read in two layouts (as itself and as groups) keeps its order."""
    views: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for group in channels.parameters.values():
        views[group.name].add(group.view)
    for group in channels.parameters.values():
        if len(views[group.name]) > 1:
            channels.fixed.append((group.atoms.ravel(), f"{group.name} is read in two layouts"))


def _fixed(channels: Channels, channel: Array) -> dict[int, str]:
    why: dict[int, str] = {}
    for atoms, reason in channels.fixed:
        for one in np.unique(channel[atoms]).tolist():
            why.setdefault(one, reason)
    return why


def _fix_ambiguous(relations: list[Relation], why: dict[int, str]) -> set[int]:
    """Children move with one parent, as one part of it; anything else is fixed. Returns all children."""
    owner: dict[int, tuple[int, int]] = {}
    every = {int(child) for relation in relations for child in np.unique(relation.children)}
    for relation in relations:
        part: dict[tuple[int, int], int] = {}
        for parent, sub, child in zip(relation.parents.tolist(), relation.sub.tolist(), relation.children.tolist(), strict=True):
            clash = owner.setdefault(child, (parent, sub)) != (parent, sub) or part.setdefault((parent, sub), child) != child
            if clash or parent in every:
                for one in (parent, child, owner[child][0]):
                    why.setdefault(one, "its channels become blocks in more than one way")
    return every


def _spread_fixed(relations: list[Relation], why: dict[int, str]) -> None:
    for relation in relations:
        for parent, child in zip(relation.parents.tolist(), relation.children.tolist(), strict=True):
            if child in why:
                why.setdefault(parent, why[child])


def _signatures(channels: Channels, channel: Array, relations: list[Relation]) -> Array:
    random = np.random.default_rng(0)

    def draw(size: int) -> Array:
        return random.integers(1, 2**63, size=size, dtype=np.uint64)

    signature = np.zeros(int(channel.max(initial=0)) + 1, dtype=np.uint64)
    for group in channels.parameters.values():
        np.add.at(signature, channel[group.atoms.ravel()], draw(1))
    for atoms, label in channels.apart:
        np.add.at(signature, channel[atoms], draw(int(label.max(initial=0)) + 1)[label])
    for relation in relations:
        marks = draw(int(relation.sub.max(initial=0)) + 1)[relation.sub]
        np.add.at(signature, relation.parents, _mixed(signature[relation.children] ^ marks))
    return signature


def _mixed(value: Array) -> Array:
    """The finaliser of splitmix64: equal inputs stay equal, all else is scattered (Steele, Lea, Flood 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(value ^ (value >> np.uint64(31)))
