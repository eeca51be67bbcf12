"""From a trained state to plain weights whose zeros are proved against the masks (rung 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch

from pipeline.errors import StageError
from pipeline.records.rung import Rung
from pipeline.sparsity.digests import mask_digest, weights_digest
from pipeline.sparsity.two_four import AXIS, is_two_four

DENSE_SHARE = 0.9
"""From this share of masked entries that are not zero a weight counts as never masked, not as one that grew back."""

# endings of a reparametrised weight: the plain name is absent, or a mask lies beside it
_REPARAMETRISED = (
    ("_orig", "torch.nn.utils.prune"),
    ("parametrizations.weight", "torch.nn.utils.parametrize"),
    ("_weight_mask", "modelopt"),
)


@dataclass(frozen=True)
class FrozenWeight:
    """One masked weight as it was found."""

    regrown: int
    """Masked entries that were not zero."""
    masked: int
    """Masked entries in all."""
    zero_fraction: float
    """Of the frozen weight."""
    proof: Rung
    text: str


@dataclass(frozen=True)
class Frozen:
    """Plain weights and their proof."""

    weights: dict[str, torch.Tensor]
    """The whole state: masked weights with every zero as +0.0, all else unchanged."""
    layers: dict[str, FrozenWeight]
    mask_digest: str
    weights_digest: str
    remasked: list[str] = field(default_factory=list)
    """Weights that had grown back and were masked again."""


def freeze(
    state: Mapping[str, torch.Tensor], masks: Mapping[str, torch.Tensor], *, on_regrowth: Literal["fail", "remask"] = "fail"
) -> Frozen:
    """Check a state dict against its masks and write plain weights.

    Args:
        state: The trained model's state dict; it is not changed.
        masks: By state-dict name, bool, True where kept.
        on_regrowth: Stop where a masked entry is not zero, or mask it again and say so.

    Raises:
        StageError: a mask without its weight, a mask that is not 2:4, a weight that is not finite, weights that grew back
            (with `fail`), or a reparametrisation that is still in the state; each names its layers.
    """
    for key, mask in masks.items():
        _refuse_unusable(key, mask, state)
    counts = {key: int(torch.count_nonzero(state[key][~mask.to(state[key].device)])) for key, mask in masks.items()}
    regrown = [key for key, count in counts.items() if count]
    if regrown and on_regrowth == "fail":
        raise _regrowth_error(regrown, counts, masks)
    weights = {key: value.detach().clone(memory_format=torch.contiguous_format) for key, value in state.items()}
    for key, mask in masks.items():
        weight = weights[key]
        weight.masked_fill_(~mask.to(weight.device), 0)
        weight.masked_fill_(weight == 0, 0)  # -0.0 as well
    return Frozen(
        weights=weights,
        layers={key: _prove(weights[key], mask, counts[key]) for key, mask in masks.items()},
        mask_digest=mask_digest(masks),
        weights_digest=weights_digest(weights),
        remasked=regrown,
    )


def _refuse_unusable(key: str, mask: torch.Tensor, state: Mapping[str, torch.Tensor]) -> None:
    prefix = key.removesuffix("weight")
    for ending, tool in _REPARAMETRISED:
        left = next((name for name in state if name.startswith((key + ending, prefix + ending))), None)
        if left is not None:
            raise StageError(
                f"the checkpoint still holds a reparametrisation of {tool}: {left}",
                where=key,
                hint="export the plain weights first (mts.export, prune.remove or remove_parametrizations)",
            )
    if key not in state:
        raise StageError("the checkpoint has no such weight", where=key, hint="freeze the checkpoint that these masks were made for")
    weight = state[key]
    if weight.shape != mask.shape:
        raise StageError(f"the weight has shape {list(weight.shape)}, its mask {list(mask.shape)}", where=key)
    if not is_two_four(mask, AXIS):
        raise StageError("the mask is not 2:4 along the input channels", where=key, hint="propose the masks anew")
    if not bool(torch.isfinite(weight).all()):
        raise StageError("the weight holds NaN or infinity", where=key, hint="look at the training that left them")


def _regrowth_error(regrown: list[str], counts: dict[str, int], masks: Mapping[str, torch.Tensor]) -> StageError:
    described, never_masked = [], 0
    for key in regrown:
        masked = int((~masks[key].bool()).sum())
        if counts[key] >= DENSE_SHARE * masked:
            never_masked += 1
            described.append(f"{key}: the checkpoint silently holds dense weights ({counts[key]} of {masked} masked weights are not zero)")
        else:
            described.append(f"{key}: {counts[key]} of {masked} masked weights grew back")
    hint = "train with the masks held to the last step, or set freeze.on_regrowth: remask"
    if never_masked:
        hint = (
            "load the masked weights: a modelopt state dict keeps the dense values, and strict=False drops the masks; "
            "or set freeze.on_regrowth: remask"
        )
    return StageError("; ".join(described), where="freeze", hint=hint)


def _prove(weight: torch.Tensor, mask: torch.Tensor, regrown: int) -> FrozenWeight:
    masked = int((~mask.bool()).sum())
    zeros = float((weight == 0).double().mean())
    held = is_two_four(weight, AXIS)
    text = (
        f"{masked} masked weights are zero" if not regrown else f"{regrown} of {masked} masked weights had grown back and were masked again"
    )
    return FrozenWeight(regrown=regrown, masked=masked, zero_fraction=zeros, proof=Rung.YES if held else Rung.NO, text=text)
