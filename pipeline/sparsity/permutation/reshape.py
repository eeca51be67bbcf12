"""How groups of atoms pass through a reshape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.sparsity.permutation.channels import Group, Value


def blocks(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Cut a reshape into its smallest independent parts: lists of dimensions with equal products, in order."""
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        ins, outs, left, right = [], [], 1, 1
        if i < len(before):
            ins, left, i = [i], before[i], i + 1
        if j < len(after):
            outs, right, j = [j], after[j], j + 1
        while left != right:
            if left < right:
                ins.append(i)
                left, i = left * before[i], i + 1
            else:
                outs.append(j)
                right, j = right * after[j], j + 1
        found.append((ins, outs))
    return found


def reshape(value: Value, after: tuple[int, ...], fix: Callable[[Group, str], None], where: str) -> Value:
    """The value under a new shape; groups that a block of the reshape cuts through are fixed."""
    groups: list[Group] = []
    done: set[int] = set()
    parts = blocks(value.shape, after)
    for index, group in enumerate(value.groups):
        touched = [part for part in parts if any(dim in group.dims for dim in part[0] if value.shape[dim] > 1)]
        simple = _one_to_one(group, touched, value.shape, after)
        if simple is not None:
            groups.append(simple)
        elif len(touched) == 1 and set(group.dims) <= set(touched[0][0]) and _alone(index, value, touched[0][0]):
            groups.extend(_through(group, touched[0], value.shape, after))
        else:
            fix(group, f"{where} mixes its channels with other dimensions")
        done.add(index)
    return Value(after, tuple(groups), value.why or f"{where} sets the order")


def _one_to_one(group: Group, touched: list[tuple[list[int], list[int]]], before: tuple[int, ...], after: tuple[int, ...]) -> Group | None:
    """The group where each of its dimensions only gained or lost neighbours of size 1."""
    place = {}
    for ins, outs in touched:
        wide_in = [dim for dim in ins if before[dim] > 1]
        wide_out = [dim for dim in outs if after[dim] > 1]
        if len(wide_in) != 1 or len(wide_out) != 1:
            return None
        place[wide_in[0]] = wide_out[0]
    if set(place) != set(group.dims):
        return None
    return group.moved(tuple(place[dim] for dim in group.dims))


def _alone(index: int, value: Value, dims: list[int]) -> bool:
    return not any(set(other.dims) & set(dims) for number, other in enumerate(value.groups) if number != index)


def _through(group: Group, part: tuple[list[int], list[int]], before: tuple[int, ...], after: tuple[int, ...]) -> list[Group]:
    ins, outs = part
    shape = [before[dim] for dim in ins]
    spread = [before[dim] if dim in group.dims else 1 for dim in ins]
    atoms = np.broadcast_to(group.atoms.reshape(spread), shape)
    sub = None if group.sub is None else np.broadcast_to(group.sub.reshape(spread), shape)
    others = [index for index, dim in enumerate(ins) if dim not in group.dims and before[dim] > 1]
    if others:
        part_of = np.zeros((1,) * len(ins), dtype=np.int64) if sub is None else sub
        for index in others:
            along = [1] * len(ins)
            along[index] = -1
            part_of = part_of * shape[index] + np.arange(shape[index]).reshape(along)
        sub = np.broadcast_to(part_of, shape)
    wide = [dim for dim in outs if after[dim] > 1]
    target = [after[dim] for dim in wide]
    return _without_parts(tuple(wide), atoms.reshape(target), None if sub is None else sub.reshape(target))


def _without_parts(dims: tuple[int, ...], atoms: np.ndarray, sub: np.ndarray | None) -> list[Group]:
    """Drop dimensions along which channels do not change at all, so that a block that is taken apart again is none."""
    if sub is not None:
        for index in range(len(dims)):
            first = atoms.take([0], axis=index)
            if len(dims) > 1 and (atoms == first).all() and (sub == sub.take([0], axis=index) + _steps(sub, index)).all():
                rest = sub.take(0, axis=index)
                kept = tuple(dim for number, dim in enumerate(dims) if number != index)
                return _without_parts(kept, atoms.take(0, axis=index), None if (rest == rest.flat[0]).all() else rest)
    return [Group(dims, np.ascontiguousarray(atoms), None if sub is None else np.ascontiguousarray(sub))]


def _steps(sub: np.ndarray, index: int) -> np.ndarray:
    line = sub[tuple(slice(None) if number == index else slice(0, 1) for number in range(sub.ndim))]
    return np.asarray(line - line.flat[0])
