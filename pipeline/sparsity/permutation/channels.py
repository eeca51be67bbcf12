"""Identity of channels: which positions of which tensor dimensions are one and the same channel.

Every position along a dimension of a parameter is an *atom*. Following the graph yields statements about atoms:

- two atoms are the same channel (a residual add, a batch norm's weight, a layer's input and its producer's output);
- atoms must stay apart by a label (heads of attention, halves of a split): a channel may trade places within its label only;
- an atom is fixed, for a stated reason;
- a block of atoms moves with a parent (the h*w columns that one channel becomes when a feature map is flattened).

Nothing is decided while the graph is followed: statements are collected, and `spaces` solves them together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Group:
    """Atoms over some dimensions of one tensor: `atoms` has the shape of `dims` (ascending)."""

    dims: tuple[int, ...]
    atoms: Array
    """int64."""
    sub: Array | None = None
    """int64, of the same shape: which part of its channel a position is, where a channel has become a block; else None."""

    def moved(self, dims: tuple[int, ...]) -> Group:
        """The same atoms, where dimension `self.dims[i]` is now `dims[i]`."""
        order = sorted(range(len(dims)), key=dims.__getitem__)
        return Group(tuple(dims[i] for i in order), self.atoms.transpose(order), None if self.sub is None else self.sub.transpose(order))


@dataclass(frozen=True)
class Value:
    """What is known of one tensor: dimensions outside all groups keep their order, `why` says because of what."""

    shape: tuple[int, ...]
    groups: tuple[Group, ...] = ()
    why: str = ""

    def over(self, dim: int) -> Group | None:
        """The group that holds a dimension."""
        return next((group for group in self.groups if dim in group.dims), None)


@dataclass(frozen=True)
class ParameterGroup:
    """Atoms over some dimensions of a parameter or buffer, seen under `view`."""

    name: str
    view: tuple[int, ...]
    dims: tuple[int, ...]
    atoms: Array


@dataclass(frozen=True)
class Relation:
    """Children that move with their parents: child i is part `sub[i]` of parent i."""

    parents: Array
    sub: Array
    children: Array


@dataclass
class Channels:
    """The collected statements."""

    count: int = 0
    edges: list[tuple[Array, Array]] = field(default_factory=list)
    apart: list[tuple[Array, Array]] = field(default_factory=list)
    """Atoms and their labels."""
    fixed: list[tuple[Array, str]] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    parameters: dict[tuple[str, tuple[int, ...], tuple[int, ...]], ParameterGroup] = field(default_factory=dict)

    def parameter(self, name: str, view: tuple[int, ...], dims: tuple[int, ...]) -> Group:
        """The atoms of a parameter's dimensions, made on first use."""
        key = (name, view, dims)
        if key not in self.parameters:
            shape = tuple(view[dim] for dim in dims)
            atoms = np.arange(self.count, self.count + int(np.prod(shape)), dtype=np.int64).reshape(shape)
            self.count += atoms.size
            self.parameters[key] = ParameterGroup(name, view, dims, atoms)
        return Group(dims, self.parameters[key].atoms)

    def fix(self, group: Group, why: str) -> None:
        """Keep every channel of the group in its place."""
        self.fixed.append((group.atoms.ravel(), why))

    def separate(self, group: Group, dims: tuple[int, ...], why: str) -> None:
        """Let no channel move along these dimensions of the tensor (those of them that the group holds)."""
        held = [index for index, dim in enumerate(group.dims) if dim in dims]
        if not held:
            return
        if len(held) == len(group.dims) or group.sub is not None:
            self.fix(group, why)
            return
        label = np.zeros((1,) * group.atoms.ndim, dtype=np.int64)
        for index in held:
            shape = [1] * group.atoms.ndim
            shape[index] = -1
            label = label * group.atoms.shape[index] + np.arange(group.atoms.shape[index]).reshape(shape)
        self.apart.append((group.atoms.ravel(), np.broadcast_to(label, group.atoms.shape).ravel()))

    def member(self, atoms: Array) -> None:
        """These atoms are used without the rest of their dimension: they trade places among themselves only."""
        self.apart.append((atoms.ravel(), np.zeros(atoms.size, dtype=np.int64)))

    def same(self, one: Group, other: Group, why: str) -> None:
        """Position by position the two groups (of one shape, or one broadcasts to the other) are the same channels."""
        if one.sub is None and other.sub is not None:
            one, other = other, one
        if one.sub is None:
            a, b = np.broadcast_arrays(one.atoms, other.atoms)
            self.edges.append((a.ravel(), b.ravel()))
        elif other.sub is None:
            parents, sub, children = np.broadcast_arrays(one.atoms, one.sub, other.atoms)
            self.relations.append(Relation(parents.ravel(), sub.ravel(), children.ravel()))
        elif one.sub.shape == other.sub.shape and np.array_equal(one.sub, other.sub):
            self.edges.append((one.atoms.ravel(), other.atoms.ravel()))
        else:
            self.fix(one, why)
            self.fix(other, why)
