"""Magnitude masks proposed by nvidia-modelopt (the method of NVIDIA's ASP), read out of a throw-away copy."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping

import torch
from torch import nn

from pipeline.errors import MissingPackageError, StageError

OUT_MULTIPLE = 8
IN_MULTIPLE = 16


def applies(kind: str, shape: tuple[int, ...]) -> bool:
    """Whether modelopt 0.47 masks such a layer: Linear or Conv2d, size(0) % 8 == 0 and size(1) % 16 == 0."""
    return kind in ("Linear", "Conv2d") and shape[0] % OUT_MULTIPLE == 0 and shape[1] % IN_MULTIPLE == 0


def propose_masks(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Propose masks by `sparse_magnitude` of modelopt.

    The weights go into bare Linear and Conv2d modules, so that the model itself is neither copied whole nor converted, and
    nothing of modelopt's (dynamic attributes, hooks, mask buffers) outlives the call.

    Args:
        weights: By name, [out, in] or [out, in, kh, kw], each one that `applies`.

    Returns:
        bool masks by the same names, on the weights' devices.

    Raises:
        MissingPackageError: modelopt is not installed.
        StageError: modelopt left a layer without a mask.
    """
    if not weights:
        return {}
    try:
        import modelopt.torch.sparsity as mts
    except ImportError as error:
        raise MissingPackageError(error.name or "nvidia-modelopt", extra="train", purpose="proposing magnitude masks") from None
    names = list(weights)
    shells = nn.Sequential(*(_shell(weights[name]) for name in names))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # it prints a line per layer
        warnings.simplefilter("ignore")
        # its default rules skip names such as *lm_head*: the shells have no names
        sparse = mts.sparsify(shells, "sparse_magnitude")
    masks = {}
    for name, shell in zip(names, sparse, strict=True):
        mask = getattr(shell, "_weight_mask", None)
        if mask is None:
            raise StageError("nvidia-modelopt proposed no mask", where=name, hint="set train.masks.proposer: sparsegate")
        masks[name] = mask.detach().to(device=weights[name].device, dtype=torch.bool).clone()
    return masks


def _shell(weight: torch.Tensor) -> nn.Module:
    out, into, *kernel = weight.shape
    module: nn.Linear | nn.Conv2d = nn.Linear(into, out, bias=False, device="meta")
    if kernel:
        module = nn.Conv2d(into, out, (kernel[0], kernel[1]), bias=False, device="meta")
    # a contiguous clone: modelopt asserts on channels_last weights
    module.weight = nn.Parameter(weight.detach().clone(memory_format=torch.contiguous_format), requires_grad=False)
    return module
