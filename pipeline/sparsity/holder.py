"""Holding masks while a model trains: weights stay plain parameters, masked entries stay zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import nn

from pipeline.errors import InputError, StageError


class _Removable(Protocol):
    def remove(self) -> None: ...


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer type by size in bytes."""


class _Held:
    """One weight and its mask, as bits: all ones where kept, none where masked out.

    `and` with them writes +0.0 whatever was there (a product would leave -0.0 and NaN), at the speed of memory: on the CPU ten
    times as fast as `masked_fill_` with a bool mask.
    """

    def __init__(self, key: str, parameter: nn.Parameter, keep: torch.Tensor) -> None:
        self.keys, self.parameter, self.keep = [key], parameter, keep
        self._bits: torch.Tensor | None = None

    def zero(self, tensor: torch.Tensor) -> None:
        """Write +0.0 over the masked entries of a tensor of the weight's shape."""
        kind = _BITS[tensor.element_size()]
        if self._bits is None or self._bits.dtype != kind or self._bits.device != tensor.device:
            self._bits = torch.empty_like(tensor.detach(), dtype=kind).copy_(self.keep).neg_()  # true -> -1: all bits
        tensor.detach().view(kind).bitwise_and_(self._bits)

    def regrown(self, weight: torch.Tensor) -> int:
        """Number of masked entries that are not zero."""
        return int(torch.count_nonzero(weight.detach()[~self.keep.to(weight.device)]))


class Holder:
    """Keeps the masked entries of a model's weights at zero.

    Gradients of masked entries are zeroed as soon as they are accumulated (so clipping by norm and momentum see the
    sparse model alone), and weights after every optimizer step (so weight decay, stale momentum or an optimizer that
    moves entries without a gradient cannot bring one back).
    """

    def __init__(self, held: list[_Held], model: nn.Module) -> None:
        self._held = held
        self._model = model
        self._hooks: list[_Removable] = []
        for one in held:
            if one.parameter.requires_grad:
                register: Any = one.parameter.register_post_accumulate_grad_hook  # untyped in torch
                self._hooks.append(register(_grad_hook(one)))
        self.apply()

    @torch.no_grad()
    def apply(self) -> None:
        """Zero all masked weights now."""
        for one in self._held:
            one.zero(one.parameter)

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Zero masked weights after each of this optimizer's steps, and masked entries of its state (momentum) now."""
        self._hooks.append(optimizer.register_step_post_hook(self._after_step))
        with torch.no_grad():
            for one in self._held:
                for value in optimizer.state.get(one.parameter, {}).values():
                    if isinstance(value, torch.Tensor) and value.shape == one.parameter.shape:
                        one.zero(value)

    def _after_step(self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.apply()

    def regrown(self) -> dict[str, int]:
        """Number of masked entries that are not zero, by weight, where there are any."""
        current = dict(self._model.named_parameters(remove_duplicate=False))
        counts = {}
        for one in self._held:
            for key in one.keys:
                count = one.regrown(current[key])
                if count:
                    counts[key] = count
        return counts

    def check(self) -> None:
        """Prove that every masked entry of the model's present weights is zero.

        Raises:
            StageError: names the weights and how many entries grew back.
        """
        counts = self.regrown()
        if counts:
            listed = ", ".join(f"{key} ({count})" for key, count in counts.items())
            raise StageError(
                f"masked weights grew back: {listed}", where="train", hint="attach the holder to every optimizer that steps them"
            )

    def detach(self) -> None:
        """Stop holding: remove all hooks; weights stay as they are."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()


def _grad_hook(one: _Held) -> Any:
    def zero_masked(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            one.zero(parameter.grad)

    return zero_masked


def hold(model: nn.Module, masks: Mapping[str, torch.Tensor]) -> Holder:
    """Zero the masked weights of a model at once and keep them zero.

    Args:
        model: Its parameters stay plain parameters: optimizers made before or after stay valid.
        masks: By state-dict name, bool of the weight's shape, True where kept. A tied weight may be named once or by each name.

    Raises:
        InputError: a mask without a parameter of that name and shape, or masks of one tied weight that differ.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    held: dict[int, _Held] = {}
    for key, mask in masks.items():
        parameter = parameters.get(key)
        if parameter is None or parameter.shape != mask.shape:
            found = "no parameter" if parameter is None else f"a parameter of shape {list(parameter.shape)}"
            raise InputError(
                f"the mask of shape {list(mask.shape)} meets {found} of that name", where=key, hint="use the masks of this very model"
            )
        keep = mask.to(device=parameter.device, dtype=torch.bool)
        known = held.get(id(parameter))
        if known is None:
            held[id(parameter)] = _Held(key, parameter, keep)
        elif torch.equal(known.keep, keep):
            known.keys.append(key)
        else:
            raise InputError(f"the mask differs from that of {known.keys[0]}, which is the same weight", where=key)
    return Holder(list(held.values()), model)
