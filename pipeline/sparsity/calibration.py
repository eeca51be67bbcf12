"""Calibration: run batches through the model and look at what is multiplied by each weight, in bounded memory.

Weights are recognised where they are used, inside `torch.nn.functional.linear` and the convolutions, so that attention's
projections and functional layers are seen as well as modules. Nothing is stored but what a visitor keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from pipeline.errors import InputError
from pipeline.sparsity.digests import weights_digest
from pipeline.sparsity.inputs import Call, as_call, first_sample, moved_to
from pipeline.sparsity.layout import conv_columns, linear_columns
from pipeline.sparsity.sites import Site

Visit = Callable[[str, slice, torch.Tensor], None]
"""Called with a weight's key, the rows of the weight that are meant, and activations [n, columns] in layout order."""

_CONVOLUTIONS = {F.conv1d: 1, F.conv2d: 2, F.conv3d: 3}
_CONV_ARGUMENTS = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_CONV_DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}


class Calibration:
    """Batches that can be run again and again, and their identity."""

    def __init__(self, batches: Iterable[Any]) -> None:
        """Take the batches, each a tensor, a tuple of positional or a mapping of keyword inputs.

        Raises:
            InputError: there are none.
        """
        self.calls: list[Call] = [as_call(batch) for batch in batches]
        if not self.calls:
            raise InputError("no calibration batches", where="train.masks.calibration", hint="give at least one batch of inputs")

    @property
    def digest(self) -> str:
        """Hex sha256 over all tensors, in order."""
        return weights_digest(
            {
                f"{index:06d}.{name}": value
                for index, (args, kwargs) in enumerate(self.calls)
                for name, value in (*((str(place), one) for place, one in enumerate(args)), *kwargs.items())
                if isinstance(value, torch.Tensor)
            }
        )

    @property
    def samples(self) -> int:
        """Samples in all batches: sizes of the first dimension."""
        firsts = (next((v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)), None) for args, kwargs in self.calls)
        return sum(int(one.shape[0]) if one is not None and one.ndim else 1 for one in firsts)

    def run(self, model: nn.Module, mode: TorchFunctionMode | None = None) -> Iterator[Any]:
        """The model's outputs, batch by batch, with a mode in force; a batch that the mode stops gives None."""
        for call in self.calls:
            args, kwargs = moved_to(call, model)
            if mode is None:
                yield model(*args, **kwargs)
                continue
            try:
                with mode:
                    output = model(*args, **kwargs)
            except Enough:
                output = None
            yield output


class Enough(Exception):  # noqa: N818 (no error: it ends a forward pass early)
    """Everything that is looked for in this forward pass has been seen."""


class Watch(TorchFunctionMode):
    """Calls a visitor with the activations that meet the watched weights."""

    def __init__(self, sites: Sequence[Site], visit: Visit, stop_after: int | None = None) -> None:
        super().__init__()
        self.keys = {id(site.parameter): site.key for site in sites}
        self.visit, self.stop_after, self.seen = visit, stop_after, 0

    def __enter__(self) -> Watch:
        self.seen = 0
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.linear or func in _CONVOLUTIONS:
            self._look(func, args, kwargs)
        elif func is F.multi_head_attention_forward:
            return self._attention(func, args, kwargs)
        return func(*args, **kwargs)

    def _attention(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Attention calls `linear` for its projections while modes are off (they would catch attention itself again)."""
        linear = F.linear

        def watched(*inner: Any, **named: Any) -> Any:
            self._look(linear, inner, named)
            return linear(*inner, **named)

        F.linear = watched
        try:
            return func(*args, **kwargs)
        finally:
            F.linear = linear

    def _look(self, func: Any, args: Any, kwargs: Any) -> None:
        given = {**_CONV_DEFAULTS, **dict(zip(_CONV_ARGUMENTS, args, strict=False)), **kwargs}
        found = self._rows(given["weight"])
        if found is None:
            return
        key, rows = found
        x, weight = given["input"].detach(), given["weight"]
        if func in _CONVOLUTIONS:
            pieces = conv_columns(x, tuple(weight.shape[2:]), given["stride"], given["padding"], given["dilation"])
        else:
            pieces = linear_columns(x)
        for piece in pieces:
            self.visit(key, rows, piece)
        self.seen += 1
        if self.stop_after is not None and self.seen >= self.stop_after:
            raise Enough

    def _rows(self, weight: torch.Tensor) -> tuple[str, slice] | None:
        """Which watched weight this is, or a slice of whose rows (attention cuts its in-projection)."""
        if id(weight) in self.keys:
            return self.keys[id(weight)], slice(0, weight.shape[0])
        base = weight._base
        if base is None or id(base) not in self.keys or weight.shape[1:] != base.shape[1:] or not weight.is_contiguous():
            return None
        start = weight.storage_offset() // max(1, base.stride(0))
        return self.keys[id(base)], slice(start, start + weight.shape[0])


@dataclass(frozen=True)
class Use:
    """One call that multiplies by a weight."""

    key: str
    source: int
    """Number of the input tensor: the same for uses that read the same values."""
    how: tuple[Any, ...]
    """What must agree for two layers to be computed side by side: kernel, stride, padding, dilation."""


class _Order(Watch):
    def __init__(self, sites: Sequence[Site]) -> None:
        super().__init__(sites, lambda key, rows, piece: None)
        self.uses: list[Use] = []
        self._inputs: dict[tuple[int, int], int] = {}
        self._alive: list[torch.Tensor] = []  # so that no id is given twice

    def _look(self, func: Any, args: Any, kwargs: Any) -> None:
        given = {**_CONV_DEFAULTS, **dict(zip(_CONV_ARGUMENTS, args, strict=False)), **kwargs}
        found = self._rows(given["weight"])
        if found is None:
            return
        x = given["input"]
        self._alive.append(x)
        source = self._inputs.setdefault((id(x), x._version), len(self._inputs))
        kernel = tuple(given["weight"].shape[2:])
        how = (kernel, *(str(given[name]) for name in ("stride", "padding", "dilation"))) if kernel else ()
        self.uses.append(Use(found[0], source, how))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode, and attention's fused path (which no mode sees) off; all is put back after."""
    modes = {module: module.training for module in model.modules()}
    fast = torch.backends.mha.get_fastpath_enabled()
    model.eval()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module, training in modes.items():
            module.training = training


def order_of_use(model: nn.Module, sites: Sequence[Site], calibration: Calibration) -> list[Use]:
    """Every use of the sites' weights in one forward pass of one sample, in order."""
    mode = _Order(sites)
    args, kwargs = moved_to(first_sample(*calibration.calls[0]), model)
    with evaluating(model), torch.no_grad(), mode:
        model(*args, **kwargs)
    return mode.uses


def activations(model: nn.Module, sites: Sequence[Site], calibration: Calibration, visit: Visit, stop_after: int | None = None) -> None:
    """Show a visitor all activations of the sites, batch by batch; each pass stops after `stop_after` uses."""
    with evaluating(model), torch.no_grad():
        for _ in calibration.run(model, Watch(sites, visit, stop_after)):
            pass
