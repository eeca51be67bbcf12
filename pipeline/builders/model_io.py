"""Inputs and outputs of an ONNX file, read without its weights."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import InputError

Shape = list[int | str | None]


def inputs_of(model: Path) -> dict[str, Shape]:
    """Shape by input name (initializers that are also listed as inputs left out); a dynamic axis is its name or None.

    Raises:
        InputError: no file, or no ONNX model.
    """
    return _values(model, "input")


def outputs_of(model: Path) -> dict[str, Shape]:
    """Shape by output name; errors as `inputs_of`."""
    return _values(model, "output")


def _values(path: Path, which: str) -> dict[str, Shape]:
    import onnx

    if not path.is_file():
        raise InputError("no such file", where=str(path))
    try:
        graph = onnx.load(str(path), load_external_data=False).graph
    except Exception as error:  # noqa: BLE001 (protobuf's DecodeError and OS errors have no common base)
        raise InputError(f"not a readable ONNX model: {error}", where=str(path)) from None
    weights = {tensor.name for tensor in graph.initializer}
    return {
        value.name: [_extent(dim) for dim in value.type.tensor_type.shape.dim]
        for value in getattr(graph, which)
        if value.name not in weights
    }


def _extent(dim: object) -> int | str | None:
    kind = dim.WhichOneof("value")  # type: ignore[attr-defined]
    return getattr(dim, kind) if kind else None
