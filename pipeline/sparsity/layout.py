"""A layer as a matrix product, columns ordered so that TensorRT's groups of four lie side by side.

The weight [out, in, *kernel] becomes [out, positions * in]: column `p * in + c` is input channel c at kernel position p, so
that four neighbouring columns are four input channels at one kernel position. Activations become [samples, positions * in] in
the same order, so that the layer's output is activations @ weight^T.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch.nn import functional as F

CHUNK = 1 << 23
"""Most elements of a piece of unfolded activations (32 MiB in fp32)."""


def as_matrix(weight: torch.Tensor) -> torch.Tensor:
    """[out, in, *kernel] -> [out, positions * in]."""
    return weight.flatten(2).movedim(1, 2).reshape(weight.shape[0], -1) if weight.ndim > 2 else weight


def from_matrix(matrix: torch.Tensor, shape: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """The inverse of `as_matrix`."""
    if len(shape) == 2:
        return matrix.reshape(shape)
    return matrix.reshape(shape[0], -1, shape[1]).movedim(2, 1).reshape(shape).contiguous()


def linear_columns(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """Activations [.., in] of a Linear, in pieces [n, in]."""
    flat = x.reshape(-1, x.shape[-1])
    yield from torch.split(flat, max(1, CHUNK // max(1, flat.shape[1])))


def conv_columns(x: torch.Tensor, kernel: tuple[int, ...], stride: Any, padding: Any, dilation: Any) -> Iterator[torch.Tensor]:
    """Activations [batch, in, *size] (or without batch) of a convolution without groups, in pieces [n, positions * in]."""
    dims = len(kernel)
    x = x if x.ndim == dims + 2 else x.unsqueeze(0)
    stride, dilation = _each(stride, dims), _each(dilation, dims)
    pads = _padding(padding, kernel, dilation)
    columns = x.shape[1] * torch.Size(kernel).numel()
    outs = [
        (size + sum(pad) - step * (width - 1) - 1) // jump + 1
        for size, pad, step, width, jump in zip(x.shape[2:], pads, dilation, kernel, stride, strict=True)
    ]
    for piece in torch.split(x, max(1, CHUNK // max(1, columns * torch.Size(outs).numel()))):
        padded = F.pad(piece, [width for pad in reversed(pads) for width in pad])
        views = []
        for offset in product(*(range(width) for width in kernel)):
            slices = [
                slice(at * step, at * step + (out - 1) * jump + 1, jump)
                for at, step, out, jump in zip(offset, dilation, outs, stride, strict=True)
            ]
            views.append(padded[(slice(None), slice(None), *slices)])
        # [positions, batch, in, *out] -> [batch * out, positions * in]
        stacked = torch.stack(views)
        yield stacked.movedim((0, 2), (-2, -1)).reshape(-1, columns)


def _each(value: Any, dims: int) -> tuple[int, ...]:
    sizes = tuple(value) if isinstance(value, (tuple, list, torch.Size)) else (value,)
    return sizes * dims if len(sizes) == 1 else sizes


def _padding(padding: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> list[tuple[int, int]]:
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        total = [step * (width - 1) for step, width in zip(dilation, kernel, strict=True)]
        return [(one // 2, one - one // 2) for one in total]
    return [(one, one) for one in _each(padding, len(kernel))]
