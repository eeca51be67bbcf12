"""The arithmetic of constants, element by element, as ONNX defines it: casts, scaling, quantization.

Each function makes a value that computes its blocks when they are read. Sources: onnx/docs/Operators.md (Cast, Mul,
QuantizeLinear, DequantizeLinear) and, for TRT_FP8*, NVIDIA's TensorRT-OSS ONNX parser (x / scale cast to E4M3; E4M3 * scale).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pipeline.graph.dtypes import is_integer, limits, numpy_type
from pipeline.graph.moves import Move
from pipeline.graph.values import NotFoldedError, Value, broadcast, computed

if TYPE_CHECKING:
    import numpy as np


def cast(value: Value, dtype: np.dtype, *, saturate: bool = True) -> Value:
    """Cast to another type; 8-bit floats clamp to their range when `saturate`."""
    if value.dtype == dtype:
        return value
    clamp = limits(dtype) if saturate and dtype.name.startswith("float8") and dtype.name != "float8_e8m0fnu" else None

    def how(block: np.ndarray) -> np.ndarray:
        import numpy as np

        with np.errstate(all="ignore"):
            return (np.clip(_wide(block), *clamp) if clamp else block).astype(dtype)

    return computed("Cast", how, [value], dtype)


def elementwise(name: str, values: list[Value]) -> Value:
    """One of the functions of `ELEMENTWISE` on inputs of one type.

    Raises:
        ValueError: the shapes or types do not fit.
        NotFoldedError: integers are divided, which numpy rounds otherwise than ONNX.
    """
    function = ELEMENTWISE[name]
    kinds = {value.dtype for value in (values[1:] if name == "Where" else values)}
    if len(kinds) != 1:
        raise ValueError(f"{name} of different types")
    dtype = kinds.pop()
    if name == "Div" and is_integer(dtype):
        raise NotFoldedError("a division of integers")

    def how(*blocks: np.ndarray) -> np.ndarray:
        import numpy as np

        with np.errstate(all="ignore"):
            return np.asarray(function(*blocks)).astype(dtype, copy=False)

    return computed(name, how, values, dtype)


def _numpy(name: str) -> Callable[..., Any]:
    def call(*blocks: np.ndarray) -> Any:
        import numpy as np

        return getattr(np, name)(*blocks)

    return call


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Mul": _numpy("multiply"),
    "Div": _numpy("divide"),
    "Add": _numpy("add"),
    "Sub": _numpy("subtract"),
    "Neg": _numpy("negative"),
    "Abs": _numpy("abs"),
    "Where": _numpy("where"),
}


def along(parameter: Value, shape: tuple[int, ...], axis: int, block: int = 0) -> Value:
    """A scale or zero point laid along the data it belongs to: per tensor, per channel of `axis`, or in blocks along it.

    Raises:
        ValueError: its shape fits none of the three.
    """
    if parameter.size == 1 and not block:
        return broadcast(parameter.moved(Move.reshape(parameter.shape, (1,) * len(shape))), shape)
    axis %= len(shape)
    if block:
        wanted = (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
        if parameter.shape != wanted:
            raise ValueError(f"scales of shape {list(parameter.shape)} do not fit blocks of {block} in {list(shape)}")
        return parameter.moved(Move.repeat(parameter.shape, axis, block, shape[axis]))
    if len(parameter.shape) != 1 or parameter.size != shape[axis]:
        raise ValueError(f"a scale or zero point of shape {list(parameter.shape)} does not fit axis {axis} of {list(shape)}")
    spread = tuple(size if dim == axis else 1 for dim, size in enumerate(shape))
    return broadcast(parameter.moved(Move.reshape(parameter.shape, spread)), shape)


def quantize(value: Value, scale: Value, zero: Value | None, dtype: np.dtype, *, saturate: bool = True) -> Value:
    """QuantizeLinear on parameters that are already laid along the data: round half to even, add the zero point, clamp."""
    low, high = limits(dtype)
    whole = is_integer(dtype)

    def how(x: np.ndarray, by: np.ndarray, *offset: np.ndarray) -> np.ndarray:
        import numpy as np

        with np.errstate(all="ignore"):
            y = x / by
            if whole:
                y = np.rint(_wide(y))
                if offset:
                    y += offset[0].astype(np.float32)
                y = np.fmin(np.fmax(y, low), high).astype(np.int32)  # NaN becomes the lowest, as where int32 stands between
            elif saturate:
                y = np.clip(_wide(y), low, high)
            return np.asarray(y.astype(dtype))

    return computed("QuantizeLinear", how, [value, scale, *([zero] if zero is not None and whole else [])], dtype)


def dequantize(value: Value, scale: Value, zero: Value | None, dtype: np.dtype) -> Value:
    """DequantizeLinear on parameters that are already laid along the data: (x - zero point) * scale in float32, then cast."""
    whole = is_integer(value.dtype)

    def how(x: np.ndarray, by: np.ndarray, *offset: np.ndarray) -> np.ndarray:
        import numpy as np

        y = x.astype(np.float32)
        if offset:
            y -= offset[0].astype(np.float32)
        with np.errstate(all="ignore"):
            return np.asarray(y * by).astype(dtype, copy=False)

    return computed("DequantizeLinear", how, [value, scale, *([zero] if zero is not None and whole else [])], dtype)


def minus_zero_point(value: Value, zero: Value) -> Value:
    """Quantized integers relative to their zero point, as int32: what an integer operator multiplies."""

    def how(x: np.ndarray, offset: np.ndarray) -> np.ndarray:
        import numpy as np

        return np.asarray(x.astype(np.int32) - offset.astype(np.int32))

    return computed("ZeroPoint", how, [value, broadcast(zero, value.shape)], numpy_type("int32"))


def _wide(block: np.ndarray) -> np.ndarray:
    import numpy as np

    return block if block.dtype in (np.float32, np.float64) else block.astype(np.float32)
