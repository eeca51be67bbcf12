"""A model's inputs and outputs in whatever shape a user gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

Call = tuple[tuple[Any, ...], dict[str, Any]]


def as_call(inputs: Any) -> Call:
    """Positional and keyword arguments from a tensor or array, a tuple or list (positional), or a mapping (by name)."""
    if isinstance(inputs, Mapping):
        return (), {str(name): _tensor(value) for name, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(_tensor(value) for value in inputs), {}
    return (_tensor(inputs),), {}


def _tensor(value: Any) -> Any:
    return torch.as_tensor(value) if hasattr(value, "__array__") and not isinstance(value, torch.Tensor) else value


def moved_to(call: Call, model: nn.Module) -> Call:
    """The call's tensors on the model's device, floating point ones in its first parameter's type."""
    parameter = next(model.parameters())
    return _mapped(call, lambda one: one.to(parameter.device, parameter.dtype if one.is_floating_point() else one.dtype))


def first_sample(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """One sample of a batch: dimension 0 cut to 1 where all tensors agree on its size, else the call as it is."""
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    if any(one.ndim == 0 for one in tensors) or len({one.shape[0] for one in tensors}) != 1:
        return args, kwargs
    return _mapped((args, kwargs), lambda one: one[:1])


def _mapped(call: Call, change: Callable[[torch.Tensor], torch.Tensor]) -> Call:
    def apply(value: Any) -> Any:
        return change(value) if isinstance(value, torch.Tensor) else value

    return tuple(apply(value) for value in call[0]), {name: apply(value) for name, value in call[1].items()}


def tensors_in(output: Any) -> Iterator[torch.Tensor]:
    """All tensors of a model's output, in order."""
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from tensors_in(value)
    elif isinstance(output, (tuple, list)):
        for value in output:
            yield from tensors_in(value)


@torch.no_grad()
def outputs_of(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[torch.Tensor], str]:
    """The model's outputs as float64, computed in float64 where the model can, and the type they were computed in."""
    call = moved_to((args, kwargs), model)
    wide = {
        name: tensor.double() if tensor.is_floating_point() else tensor
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
    }
    try:
        double_args, double_kwargs = _mapped(call, lambda one: one.double() if one.is_floating_point() else one)
        output = torch.func.functional_call(model, wide, double_args, double_kwargs)
        return [one.double() for one in tensors_in(output)], "float64"
    except RuntimeError:  # a model that names its own types
        output = model(*call[0], **call[1])
        kind = str(next(model.parameters()).dtype).removeprefix("torch.")
        return [one.double() for one in tensors_in(output)], kind
