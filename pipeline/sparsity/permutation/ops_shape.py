"""Rules of operators that move, cut or join positions."""

from __future__ import annotations

import numpy as np

from pipeline.sparsity.permutation.channels import Group, Value
from pipeline.sparsity.permutation.follow import Call, NotFollowedError, Rule
from pipeline.sparsity.permutation.reshape import reshape


def _reshape(call: Call) -> Value:
    return reshape(call.value("self"), call.shape, call.channels.fix, call.name)


def _permuted(value: Value, order: list[int]) -> Value:
    place = {old % len(order): new for new, old in enumerate(order)}
    groups = tuple(group.moved(tuple(place[dim] for dim in group.dims)) for group in value.groups)
    return Value(tuple(value.shape[dim] for dim in order), groups, value.why)


def _permute(call: Call) -> Value:
    return _permuted(call.value("self"), list(call.args["dims"]))


def _transpose(call: Call) -> Value:
    value = call.value("self")
    order = list(range(len(value.shape)))
    one, two = (call.args.get(name, default) for name, default in (("dim0", 0), ("dim1", min(1, len(order) - 1))))
    order[one], order[two] = order[two], order[one]
    return _permuted(value, order)


def _expand(call: Call) -> Value:
    value = call.value("self")
    shift = len(call.shape) - len(value.shape)
    groups = tuple(group.moved(tuple(dim + shift for dim in group.dims)) for group in value.groups)
    return Value(call.shape, groups, value.why)


def _indexed(call: Call, value: Value, dim: int, index: np.ndarray, *, keep: bool = True) -> Value:
    """Take positions along one dimension; without `keep` the dimension itself goes away."""
    shape = list(value.shape)
    dim %= len(shape)
    shape[dim] = len(index)
    groups = []
    for group in value.groups:
        if dim in group.dims:
            axis = group.dims.index(dim)
            atoms = group.atoms.take(index, axis)
            sub = None if group.sub is None else group.sub.take(index, axis)
            if len(index) < value.shape[dim]:
                call.channels.member(atoms)
            group = Group(group.dims, atoms, sub)
            if not keep:
                dims = tuple(other for other in group.dims if other != dim)
                if not dims:
                    call.channels.fix(group, f"{call.name} takes one channel")
                    continue
                group = Group(dims, atoms.squeeze(axis), None if sub is None else sub.squeeze(axis))
        groups.append(group if keep else group.moved(tuple(other - (other > dim) for other in group.dims)))
    if not keep:
        del shape[dim]
    return Value(tuple(shape), tuple(groups), value.why)


def _slice(call: Call) -> Value:
    value = call.value("self")
    dim = call.args["dim"]
    index = np.arange(value.shape[dim])[slice(call.args.get("start"), call.args.get("end"), call.args.get("step"))]
    return _indexed(call, value, dim, index)


def _narrow(call: Call) -> Value:
    start = int(call.args["start"])
    return _indexed(call, call.value("self"), call.args["dim"], np.arange(start, start + int(call.args["length"])))


def _select(call: Call) -> Value:
    value = call.value("self")
    index = int(call.args["index"]) % value.shape[call.args["dim"]]
    return _indexed(call, value, call.args["dim"], np.array([index]), keep=False)


def _pieces(call: Call) -> list[Value]:
    value, dim = call.value("self"), int(call.args["dim"])
    found, start = [], 0
    for piece in call.node.meta["val"]:
        size = int(piece.shape[dim])
        found.append(_indexed(call, value, dim, np.arange(start, start + size)))
        start += size
    return found


def _unbind(call: Call) -> list[Value]:
    value, dim = call.value("self"), int(call.args["dim"])
    return [_indexed(call, value, dim, np.array([index]), keep=False) for index in range(value.shape[dim])]


def _flip(call: Call) -> Value:
    value = call.value("self")
    for dim in call.args["dims"]:
        value = _indexed(call, value, dim, np.arange(value.shape[dim])[::-1])
    return value


def _roll(call: Call) -> Value:
    value = call.value("self")
    if not call.args["dims"]:
        raise NotFollowedError(f"{call.name} rolls the flattened tensor")
    for shift, dim in zip(call.args["shifts"], call.args["dims"], strict=True):
        value = _indexed(call, value, dim, np.roll(np.arange(value.shape[dim]), shift))
    return value


def _pad(call: Call) -> Value:
    value = call.value("self")
    pad = call.args["pad"]
    ndim = len(value.shape)
    padded = [ndim - 1 - index // 2 for index, width in enumerate(pad) if width]
    for group in value.groups:
        if any(dim in group.dims for dim in padded):
            raise NotFollowedError(f"{call.name} pads channels")
    return Value(call.shape, value.groups, value.why)


def _cat(call: Call) -> Value:
    values = [call.follower.value(node) for node in call.args["tensors"]]
    values = [value for value in values if value.shape != (0,)]
    dim = int(call.args["dim"]) % len(call.shape)
    joined: list[Group] = []
    for value in values:
        for group in value.groups:
            if dim in group.dims and len(group.dims) > 1:
                raise NotFollowedError(f"{call.name} joins along one of several dimensions that hold channels")
    along = [value.over(dim) for value in values]
    if any(group is not None for group in along):
        if any(group is not None and group.sub is not None for group in along):
            raise NotFollowedError(f"{call.name} joins flattened channels")
        joined.append(Group((dim,), np.concatenate([_own(call, value, dim, group) for value, group in zip(values, along, strict=True)])))
    rest = [Value(value.shape, tuple(group for group in value.groups if dim not in group.dims), value.why) for value in values]
    others = meet(call, rest, call.shape, ignore=dim)
    return Value(call.shape, (*joined, *others.groups), others.why)


def _own(call: Call, value: Value, dim: int, group: Group | None) -> np.ndarray:
    """The atoms of one joined piece; a piece whose order is fixed gets fixed atoms of its own."""
    if group is not None:
        return group.atoms
    fresh = Group((dim,), np.arange(call.channels.count, call.channels.count + value.shape[dim], dtype=np.int64))
    call.channels.count += value.shape[dim]
    call.channels.fix(fresh, value.why)
    return fresh.atoms


def meet(call: Call, values: list[Value], shape: tuple[int, ...], *, ignore: int | None = None) -> Value:
    """Values that are combined position by position, with broadcasting: the same positions are the same channels.

    Where one of them keeps the order of a dimension along which another has channels, those channels stay apart.
    """
    aligned = [_expanded(value, len(shape)) for value in values]
    merged: list[Group] = []
    for value in aligned:
        for group in value.groups:
            merged = _merge(call, merged, group)
    for value in aligned:
        for group in merged:
            held = {dim for one in value.groups for dim in one.dims}
            kept = tuple(dim for dim in group.dims if value.shape[dim] > 1 and dim not in held and dim != ignore)
            if kept:
                call.channels.separate(group, kept, value.why or call.name)
    why = next((value.why for value in aligned if value.why), "")
    return Value(shape, tuple(merged), why)


def _expanded(value: Value, ndim: int) -> Value:
    shift = ndim - len(value.shape)
    if not shift:
        return value
    groups = tuple(group.moved(tuple(dim + shift for dim in group.dims)) for group in value.groups)
    return Value((1,) * shift + value.shape, groups, value.why)


def _merge(call: Call, groups: list[Group], group: Group) -> list[Group]:
    touching = [other for other in groups if set(other.dims) & set(group.dims)]
    rest = [other for other in groups if other not in touching]
    if not touching:
        return [*groups, group]
    widest = max([*touching, group], key=lambda one: len(one.dims))
    for other in [*touching, group]:
        if other is widest:
            continue
        if not set(other.dims) <= set(widest.dims):
            call.channels.fix(other, f"{call.name} combines channels over different dimensions")
            call.channels.fix(widest, f"{call.name} combines channels over different dimensions")
            continue
        spread = [size if dim in other.dims else 1 for dim, size in zip(widest.dims, widest.atoms.shape, strict=True)]
        narrow = Group(widest.dims, other.atoms.reshape(spread), None if other.sub is None else other.sub.reshape(spread))
        call.channels.same(widest, narrow, call.name)
        if widest.sub is not None and other.sub is None:  # the block's parts keep their names
            continue
    return [*rest, widest]


RULES: dict[str, Rule] = {
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as"), _reshape),
    "permute": _permute,
    **dict.fromkeys(("transpose", "t", "swapaxes", "numpy_T"), _transpose),
    "expand": _expand,
    "expand_as": _expand,
    "slice": _slice,
    "narrow": _narrow,
    "select": _select,
    **dict.fromkeys(("split", "split_with_sizes", "chunk"), _pieces),
    "unbind": _unbind,
    "flip": _flip,
    "roll": _roll,
    **dict.fromkeys(("pad", "constant_pad_nd"), _pad),
    "cat": _cat,
    "concat": _cat,
}
