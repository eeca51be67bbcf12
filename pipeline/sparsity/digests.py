"""Digests that identify weights and masks by content, whatever file they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch


def weights_digest(state: Mapping[str, torch.Tensor]) -> str:
    """Hex sha256 over the sorted names, dtypes, shapes and bytes of the tensors; -0.0 and +0.0 differ."""
    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        head = f"{len(name)}:{name}|{str(tensor.dtype).removeprefix('torch.')}|{list(tensor.shape)}|"
        digest.update(head.encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def mask_digest(masks: Mapping[str, torch.Tensor]) -> str:
    """Hex sha256 over the sorted names, shapes and bits of bool masks."""
    return weights_digest({name: mask.to(torch.bool) for name, mask in masks.items()})
