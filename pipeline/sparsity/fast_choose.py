"""The two largest of four by magnitude, compiled by numba for the CPU: the same choice as `choose.two_best`, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit, prange, set_num_threads
from numba.core import config


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def _four(a: float, b: float, c: float, d: float) -> Any:
    """One comparison per pair, the earlier one winning ties; kept are those that lose at most one of three."""
    ab, ac, ad = a >= b, a >= c, a >= d
    bc, bd, cd = b >= c, b >= d, c >= d
    return (
        np.uint8(ab) + np.uint8(ac) + np.uint8(ad) >= 2,
        np.uint8(not ab) + np.uint8(bc) + np.uint8(bd) >= 2,
        np.uint8(not ac) + np.uint8(not bc) + np.uint8(cd) >= 2,
        np.uint8(not ad) + np.uint8(not bd) + np.uint8(not cd) >= 2,
    )


@njit(cache=True, parallel=True, nogil=True)  # type: ignore[untyped-decorator]
def _neighbours(values: np.ndarray, keep: np.ndarray) -> None:
    """Groups of four neighbours: [rows, columns]."""
    for i in prange(values.shape[0]):
        row, out = values[i], keep[i]
        for g in range(0, row.size, 4):
            k = _four(abs(row[g]), abs(row[g + 1]), abs(row[g + 2]), abs(row[g + 3]))
            out[g], out[g + 1], out[g + 2], out[g + 3] = k[0], k[1], k[2], k[3]


@njit(cache=True, parallel=True, nogil=True)  # type: ignore[untyped-decorator]
def _strided(values: np.ndarray, keep: np.ndarray) -> None:
    """Groups along the middle of [outer, channels, inner]."""
    for i in prange(values.shape[0]):
        for g in range(0, values.shape[1], 4):
            for r in range(values.shape[2]):
                k = _four(abs(values[i, g, r]), abs(values[i, g + 1, r]), abs(values[i, g + 2, r]), abs(values[i, g + 3, r]))
                keep[i, g, r], keep[i, g + 1, r], keep[i, g + 2, r], keep[i, g + 3, r] = k[0], k[1], k[2], k[3]


def applies(weight: torch.Tensor, axis: int) -> bool:
    """Whether the compiled choice can take this tensor."""
    kinds = (torch.float32, torch.float64)
    return weight.device.type == "cpu" and weight.dtype in kinds and weight.is_contiguous() and axis == 1 and weight.ndim > 1


def magnitude_mask(weight: torch.Tensor) -> torch.Tensor:
    """The mask of a contiguous float32 or float64 weight [out, in, *kernel] on the CPU, with as many threads as torch uses."""
    set_num_threads(min(torch.get_num_threads(), config.NUMBA_NUM_THREADS))
    keep = torch.empty(weight.shape, dtype=torch.bool)
    shape = (*weight.shape[:2], -1)
    values, out = weight.detach().reshape(shape).numpy(), keep.reshape(shape).numpy()
    if weight[0, 0].numel() == 1:
        _neighbours(values.reshape(weight.shape[:2]), out.reshape(weight.shape[:2]))
    else:
        _strided(values, out)
    return keep
