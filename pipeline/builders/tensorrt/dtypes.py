"""TensorRT's types as numpy's, by name: trt.nptype knows neither BF16 nor FP8 and needs the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError

if TYPE_CHECKING:
    import numpy as np

NUMPY_NAME = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "INT64": "int64",
    "INT32": "int32",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
}
"""Name in trt.DataType -> numpy's (bfloat16 is ml_dtypes', which onnx brings along)."""


def numpy_name(kind: Any) -> str:
    """Numpy's name of a trt.DataType.

    Raises:
        InputError: a type that an input or output cannot have here.
    """
    if kind.name not in NUMPY_NAME:
        raise InputError(f"the type {kind.name} cannot be fed or read", where="engine inputs and outputs")
    return NUMPY_NAME[kind.name]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of one of these names."""
    import numpy as np

    if name == "bfloat16":
        from ml_dtypes import bfloat16

        kind: np.dtype[Any] = np.dtype(bfloat16)
        return kind
    return np.dtype(name)
