"""Inputs of an ONNX file, read without its weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.paths import missing

MAX_BYTES = (1 << 31) - 1
"""Of a protobuf message."""
Shape = list[int | str | None]
NUMPY_NAMES = {"float": "float32", "double": "float64"}
"""ONNX's names of types, in lower case, that are not numpy's."""


def inputs_of(model: Path) -> dict[str, Shape]:
    """Shape by input name (initializers that are also listed as inputs left out); a dynamic axis is its name or None.

    Raises:
        InputError: no file, or no ONNX model.
    """
    return {value.name: [_extent(dim) for dim in value.type.tensor_type.shape.dim] for value in _inputs(model)}


def dynamic_inputs(model: Path) -> list[str]:
    """Names of the inputs with a dynamic axis; errors as `inputs_of`."""
    return [name for name, shape in inputs_of(model).items() if any(not (isinstance(extent, int) and extent >= 0) for extent in shape)]


def input_types(model: Path) -> dict[str, str]:
    """Numpy's name of the type (`float32`, `bfloat16`, ...) by input name; errors as `inputs_of`."""
    import onnx

    names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    kinds = {value.name: names[value.type.tensor_type.elem_type] for value in _inputs(model)}
    return {name: NUMPY_NAMES.get(kind, kind) for name, kind in kinds.items()}


def _inputs(path: Path) -> list[Any]:
    import onnx

    _can_be_read(path)
    try:
        graph = onnx.load(str(path), load_external_data=False).graph
    except Exception as error:  # noqa: BLE001 (protobuf's DecodeError and OS errors have no common base)
        raise InputError(f"not a readable ONNX model: {error}", where=str(path)) from None
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _can_be_read(path: Path) -> None:
    """Refuse what would be read into memory for nothing."""
    if not path.is_file():
        raise InputError("no such file", where=str(path), hint=missing(path))
    if path.stat().st_size > MAX_BYTES:
        hint = "onnx.save(model, file, save_as_external_data=True) keeps its weights beside it; sparsegate check tells whether it is whole"
        raise InputError("an ONNX file of more than 2 GiB, which protobuf does not read", where=str(path), hint=hint)


def _extent(dim: Any) -> int | str | None:
    kind = dim.WhichOneof("value")
    extent: int | str | None = getattr(dim, kind) if kind else None
    return extent


def is_whole(model: Path) -> bool:
    """Whether the file holds all of its weights itself."""
    import onnx

    light = onnx.load(str(model), load_external_data=False)
    helper = onnx.external_data_helper
    return not any(helper.uses_external_data(tensor) for tensor in helper._get_all_tensors(light))


def copy_whole(source: Path, target: Path) -> None:
    """Copy an ONNX file; weights that it keeps in other files move into the copy, so that one digest covers all.

    Raises:
        InputError: no ONNX model, weights that are missing, or more of them than one file can hold (2 GB).
    """
    import onnx

    _can_be_read(source)

    try:
        gathered = None if is_whole(source) else onnx.load(str(source)).SerializeToString()
    except Exception as error:  # noqa: BLE001 (protobuf, checker and OS errors have no common base)
        raise InputError(f"not a readable ONNX model: {error}", where=str(source), hint="sparsegate check on the file") from None
    if gathered is None:
        shutil.copyfile(source, target)
    else:
        target.write_bytes(gathered)
