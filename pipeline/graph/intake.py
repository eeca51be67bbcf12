"""An ONNX file that somebody else exported, taken into a run: copied whole, and what the stages after it must know of it."""

from __future__ import annotations

import shutil
from collections import Counter
from math import prod
from pathlib import Path

from pipeline.errors import InputError
from pipeline.graph.model import open_external, open_model


def external_data(path: Path) -> list[str]:
    """Paths of a model's external data, relative to its folder; empty where the file holds all of its weights.

    Raises:
        InputError: it is no ONNX model, or its external data is missing or lies outside its folder.
    """
    return open_external(open_model(path))


def copy_model(source: Path, target: Path) -> Path:
    """Copy an ONNX file with the external data files that lie beside it.

    Args:
        source: The model.
        target: The copy; external data keeps its place relative to it.

    Returns:
        The copy.

    Raises:
        InputError: it is no ONNX model, or its external data is missing or lies outside its folder.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for location in external_data(source):
        (target.parent / location).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / location, target.parent / location)
    shutil.copyfile(source, target)
    return target


def input_shapes(path: Path) -> dict[str, list[int | str]]:
    """Shape of every input: the first axis may be dynamic (`batch`), the others must be fixed.

    Raises:
        InputError: an input whose shape this chain cannot feed.
    """
    graph = open_model(path).proto.graph
    weights = {tensor.name for tensor in graph.initializer}
    shapes: dict[str, list[int | str]] = {}
    for value in graph.input:
        if value.name in weights:
            continue
        sizes = [dim.dim_value or None for dim in value.type.tensor_type.shape.dim]
        if None in sizes[1:]:
            raise InputError(
                f"input {value.name!r} has a dynamic axis besides the batch: {sizes}", where=str(path), hint="fix the other axes first"
            )
        shapes[value.name] = ["batch" if size is None else size for size in sizes]
    return shapes


def precision_of(path: Path) -> str:
    """`fp32`, `fp16` or `bf16`: the type of most of the weights' elements."""
    import onnx

    names = {onnx.TensorProto.FLOAT: "fp32", onnx.TensorProto.FLOAT16: "fp16", onnx.TensorProto.BFLOAT16: "bf16"}
    counts: Counter[str] = Counter()
    for tensor in open_model(path).proto.graph.initializer:
        if tensor.data_type in names:
            counts[names[tensor.data_type]] += prod(tensor.dims)
    return counts.most_common(1)[0][0] if counts else "fp32"


def opset_of(path: Path) -> int:
    """Version of ONNX's own operators that the file imports; 0 where it imports none."""
    return next((int(item.version) for item in open_model(path).proto.opset_import if item.domain in ("", "ai.onnx")), 0)
