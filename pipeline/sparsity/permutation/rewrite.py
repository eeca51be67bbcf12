"""Moving channels: the same reordering in every parameter and buffer that holds them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from pipeline.sparsity.permutation.channels import Array, ParameterGroup
from pipeline.sparsity.permutation.spaces import Solution


def complete(solution: Solution, moves: Mapping[int, int]) -> Array:
    """Extend moves of channels to the blocks that follow them.

    Args:
        solution: Solved channels.
        moves: For channels that move: whose content comes to their place. A permutation of its keys.

    Returns:
        int64 [channels]: for each channel, whose content comes to its place.
    """
    size = int(solution.channel.max(initial=-1)) + 1
    source = np.arange(size, dtype=np.int64)
    for to, come_from in moves.items():
        source[to] = come_from
    for relation in solution.relations:
        parts = zip(relation.parents.tolist(), relation.sub.tolist(), strict=True)
        child = dict(zip(parts, relation.children.tolist(), strict=True))
        for (parent, sub), one in child.items():
            if parent in moves:
                source[one] = child[(moves[parent], sub)]
    return source


def positions(group: ParameterGroup, channel: Array, source: Array) -> Array | None:
    """For each position of a parameter's dimension(s), flattened: the position that its content comes from; None if all stay."""
    own = channel[group.atoms.ravel()]
    wanted = source[own]
    if np.array_equal(own, wanted):
        return None
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    rank = np.empty_like(own)  # the n-th position of a channel takes from the n-th of the other
    rank[order] = np.arange(own.size) - np.searchsorted(ordered, ordered, side="left")
    return np.asarray(order[np.searchsorted(ordered, wanted, side="left") + rank])


@torch.no_grad()
def move(model: nn.Module, solution: Solution, source: Array) -> list[str]:
    """Reorder the model's parameters and buffers in place; returns the names of those that changed."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    changed = []
    for group in solution.parameters:
        taken = positions(group, solution.channel, source)
        if taken is None:
            continue
        tensor = tensors[group.name].data
        view = tensor.reshape(group.view).movedim(group.dims, tuple(range(len(group.dims))))
        flat = view.reshape(group.atoms.size, *view.shape[len(group.dims) :])
        moved = flat[torch.from_numpy(taken).to(tensor.device)].reshape(view.shape)
        tensor.copy_(moved.movedim(tuple(range(len(group.dims))), group.dims).reshape(tensor.shape))
        changed.append(group.name)
    return changed
