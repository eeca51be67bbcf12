"""ONNX element types as numpy types: names, widths, and which of them hold integers.

Source: onnx.proto3, `TensorProto.DataType`, and its comments on packed 2-bit and 4-bit types (first element in the low bits).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class ElementType(NamedTuple):
    """One element type of ONNX."""

    name: str
    """Name of the numpy or ml_dtypes type."""
    bits: int
    """Width in a file; types of less than 8 bits are packed."""
    integer: bool


ELEMENT_TYPES: dict[int, ElementType] = {
    1: ElementType("float32", 32, False),
    2: ElementType("uint8", 8, True),
    3: ElementType("int8", 8, True),
    4: ElementType("uint16", 16, True),
    5: ElementType("int16", 16, True),
    6: ElementType("int32", 32, True),
    7: ElementType("int64", 64, True),
    9: ElementType("bool", 8, True),
    10: ElementType("float16", 16, False),
    11: ElementType("float64", 64, False),
    12: ElementType("uint32", 32, True),
    13: ElementType("uint64", 64, True),
    16: ElementType("bfloat16", 16, False),
    17: ElementType("float8_e4m3fn", 8, False),
    18: ElementType("float8_e4m3fnuz", 8, False),
    19: ElementType("float8_e5m2", 8, False),
    20: ElementType("float8_e5m2fnuz", 8, False),
    21: ElementType("uint4", 4, True),
    22: ElementType("int4", 4, True),
    23: ElementType("float4_e2m1fn", 4, False),
    24: ElementType("float8_e8m0fnu", 8, False),
    25: ElementType("uint2", 2, True),
    26: ElementType("int2", 2, True),
}
"""Strings, complex numbers and 6-bit floats are no weights of the operators that are judged."""

_BY_NAME = {kind.name: kind for kind in ELEMENT_TYPES.values()}


def numpy_type(name: str) -> np.dtype:
    """The numpy type of a name, from ml_dtypes where numpy itself has none."""
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))


def is_integer(dtype: np.dtype) -> bool:
    """Whether a type holds integers, ml_dtypes' narrow ones included."""
    return _BY_NAME[dtype.name].integer if dtype.name in _BY_NAME else dtype.kind in "iub"


def limits(dtype: np.dtype) -> tuple[float, float]:
    """Smallest and largest finite value of an integer or float type."""
    import ml_dtypes

    info: Any = ml_dtypes.iinfo(dtype) if is_integer(dtype) else ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(info.min), float(info.max)
