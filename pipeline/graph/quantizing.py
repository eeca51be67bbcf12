"""How a constant goes on through quantization: the standard's QuantizeLinear and DequantizeLinear, and TensorRT's FP8 nodes."""

from __future__ import annotations

from dataclasses import replace

from pipeline.graph import arithmetic
from pipeline.graph.dtypes import ELEMENT_TYPES, numpy_type
from pipeline.graph.scopes import Call, Const, Quantized
from pipeline.graph.values import NotFoldedError, Value, computed


def quantize(call: Call) -> list[Const]:
    const = call.first()
    value, scale, zero = const.load(), call.value(1), call.value(2)
    if scale is None or (call.given(2) and zero is None):
        raise NotFoldedError("its scale or zero point is not constant")
    number = call.number("output_dtype", 0)
    dtype = zero.dtype if zero is not None else numpy_type(ELEMENT_TYPES[number].name if number in ELEMENT_TYPES else "uint8")
    axis, block = call.number("axis", 1), call.number("block_size", 0)
    precision = call.number("precision", 0)
    wide = numpy_type(ELEMENT_TYPES[precision].name) if precision in ELEMENT_TYPES else None
    x, by = (arithmetic.cast(part, wide) for part in (value, scale)) if wide is not None else (value, scale)
    rounded = arithmetic.quantize(
        x,
        arithmetic.along(by, value.shape, axis, block),
        None if zero is None else arithmetic.along(zero, value.shape, axis, block),
        dtype,
        saturate=bool(call.number("saturate", 1)),
    )
    return [const.through("QuantizeLinear", rounded, before=value, quantized=_quantized(dtype.name, scale, zero, block))]


def dequantize(call: Call) -> list[Const]:
    const = call.first()
    value, scale, zero = const.load(), call.value(1), call.value(2)
    if scale is None or (call.given(2) and zero is None):
        raise NotFoldedError("its scale or zero point is not constant")
    axis, block = call.number("axis", 1), call.number("block_size", 0)
    number = call.number("output_dtype", 0)
    dtype = numpy_type(ELEMENT_TYPES[number].name) if number in ELEMENT_TYPES else scale.dtype
    real = arithmetic.dequantize(
        value,
        arithmetic.along(scale, value.shape, axis, block),
        None if zero is None else arithmetic.along(zero, value.shape, axis, block),
        dtype,
    )
    return [const.through("DequantizeLinear", real, quantized=_quantized(value.dtype.name, scale, zero, block))]


def _quantized(dtype: str, scale: Value, zero: Value | None, block: int) -> Quantized:
    import numpy as np

    shifted = zero is not None and bool(np.any(zero.array().astype(np.float32)))
    return Quantized(dtype=dtype, zero_point=shifted, layout="block" if block else "tensor" if scale.size == 1 else "channel")


def fp8_quantize(call: Call) -> list[Const]:
    const = call.first()
    value, scale = const.load(), call.value(1)
    if scale is None:
        raise NotFoldedError("its scale is not constant")
    dtype = numpy_type("float8_e4m3fn")
    axis = call.number("axis", 0)
    rounded = arithmetic.quantize(value, arithmetic.along(scale, value.shape, axis), None, dtype)
    kind = replace(_quantized(dtype.name, scale, None, 0), custom=True)
    return [const.through(call.node.op_type, rounded, before=value, quantized=kind)]


def fp8_dequantize(call: Call) -> list[Const]:
    const = call.first()
    value, scale = const.load(), call.value(1)
    if scale is None:
        raise NotFoldedError("its scale is not constant")
    dtype = numpy_type("float8_e4m3fn")
    if value.dtype.name in ("uint8", "int8"):  # the parser's own storage of E4M3 bytes
        value = _reinterpreted(value, "float8_e4m3fn")
    real = arithmetic.dequantize(value, arithmetic.along(scale, value.shape, call.number("axis", 0)), None, scale.dtype)
    kind = replace(_quantized(dtype.name, scale, None, 0), custom=True)
    return [const.through(call.node.op_type, real, quantized=kind)]


def _reinterpreted(value: Value, name: str) -> Value:
    dtype = numpy_type(name)
    return computed("bytes", lambda block: block.view(dtype), [value], dtype)
