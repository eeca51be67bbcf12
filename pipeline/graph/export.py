"""torch -> ONNX with the dynamo exporter: one dynamic batch axis, one precision inside, float32 at the door."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor, nn

INLINE_BYTES = 1 << 30
"""Weights up to this size stay inside the .onnx file (protobuf ends at 2 GiB); larger ones go to external data."""
BF16_OPSET = 22
"""ONNX allows bfloat16 convolutions from this opset on."""


def export_model(
    model: nn.Module,
    example: Mapping[str, Tensor],
    path: Path,
    *,
    outputs: Sequence[str],
    precision: str,
    opset: int,
    batch: Mapping[str, int],
) -> Path:
    """Export a model in eval mode to `path`, checked by onnx's full checker.

    Args:
        model: Any module; it is copied, not changed.
        example: Example inputs by name, each [batch, ...] float32.
        path: File to write; its folder must exist. Large weights go to `<name>.data` beside it.
        outputs: Names of the outputs, in the order in which the model returns them.
        precision: `fp32`, `fp16` or `bf16`: the type of weights and activations. Inputs and outputs stay float32, cast
            at the border, so that one data pipeline serves every arm.
        opset: ONNX opset.
        batch: `min` and `max` of the dynamic batch axis.

    Raises:
        StageError: the exporter or the checker refuses the model.
    """
    import copy

    import torch

    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    if dtype is torch.bfloat16 and opset < BF16_OPSET:
        raise StageError(f"bf16 convolutions need opset {BF16_OPSET}, not {opset}", where="export", hint=f"set export.opset: {BF16_OPSET}")
    wrapped = _at_border(copy.deepcopy(model).to("cpu").eval(), dtype)
    settings = {
        "input_names": list(example),
        "output_names": list(outputs),
        "dynamic_shapes": _dynamic(example, batch, packed=dtype is not torch.float32),
        "opset_version": opset,
        # torch 2.13 and 2.14 fold BatchNormalization into bf16 convolutions as float32, which no parser accepts
        "optimize": dtype is not torch.bfloat16,
    }
    weight_bytes = sum(tensor.nbytes for tensor in wrapped.state_dict().values())
    try:
        with _quiet():
            program = torch.onnx.export(wrapped, args=tuple(example.values()), dynamo=True, verbose=False, **settings)
        if program is None:
            raise StageError("the exporter returned no program")
    except Exception as error:  # whatever any layer of torch raises
        raise StageError(
            f"torch.onnx.export failed: {_first_line(error)}",
            where=f"export: {path.name}",
            hint="export the model by itself to see the full trace",
        ) from error
    program.save(str(path), external_data=weight_bytes > INLINE_BYTES)
    check_model(path)
    return path


def check_model(path: Path) -> None:
    """Run onnx's full checker (with shape inference) on a file."""
    import onnx

    try:
        onnx.checker.check_model(str(path), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise StageError(f"onnx.checker refuses the file: {_first_line(error)}", where=str(path)) from None


def _dynamic(example: Mapping[str, Tensor], batch: Mapping[str, int], *, packed: bool) -> Any:
    """The exporter's dynamic_shapes: one shared batch axis, or None where the range is a single size."""
    import torch

    if batch["min"] == batch["max"]:
        return None
    axis = torch.export.Dim("batch", min=batch["min"], max=batch["max"])
    shapes = tuple({0: axis} for _ in example)
    return (shapes,) if packed else shapes


def _at_border(model: nn.Module, dtype: Any) -> nn.Module:
    """The model in `dtype`, with float32 inputs cast on entry and outputs cast back."""
    import torch
    from torch import nn

    if dtype is torch.float32:
        return model

    class Bordered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model.to(dtype)

        def forward(self, *inputs: Tensor) -> Any:
            result = self.model(*[x.to(dtype) if x.is_floating_point() else x for x in inputs])
            if isinstance(result, torch.Tensor):
                return result.float()
            return tuple(part.float() for part in (result.values() if isinstance(result, dict) else result))

    return Bordered()


def _quiet() -> Any:
    """The exporter's warnings are about its own internals."""
    import contextlib
    import io
    import logging
    import warnings

    stack = contextlib.ExitStack()
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
    for name in ("torch.onnx", "onnxscript", "onnx_ir"):
        logger = logging.getLogger(name)
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.ERROR)
    return stack


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]
