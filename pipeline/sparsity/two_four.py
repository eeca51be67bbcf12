"""The 2:4 pattern on a torch tensor, tied to `pipeline.pattern` by a property test."""

from __future__ import annotations

import torch

from pipeline.pattern import GROUP, KEEP

AXIS = 1
"""TensorRT's reduction axis in torch's layout: input features of Linear [out, in] and input channels of ConvNd
[out, in/groups, *kernel], there for each kernel position apart."""


def groups_last(tensor: torch.Tensor, axis: int = AXIS) -> torch.Tensor:
    """View or copy the tensor as [groups in all, 4], groups along `axis` (its size a multiple of 4)."""
    return tensor.movedim(axis, -1).reshape(-1, GROUP)


def violations(tensor: torch.Tensor, axis: int) -> int | None:
    """Number of groups with more than 2 values that are not zero; None where the axis is no multiple of 4."""
    if tensor.shape[axis] % GROUP:
        return None
    return int(((groups_last(tensor, axis) != 0).sum(dim=1) > KEEP).sum())


def is_two_four(tensor: torch.Tensor, axis: int) -> bool:
    """Whether at least 2 of every 4 consecutive values along `axis` are zero; False where it is no multiple of 4.

    Args:
        tensor: Any shape, any dtype that compares to 0; -0.0 counts as zero, NaN does not.
        axis: The reduction axis; negative counts from the end.
    """
    return violations(tensor, axis) == 0
