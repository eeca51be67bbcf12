"""Operations and bytes of every weighted operator at given input shapes, from the ONNX check and ONNX's own shape inference."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.errors import InputError
from pipeline.graph.storage import ITEM_BYTES
from pipeline.records.check import CheckedLayer, Outcome
from pipeline.records.estimate import LayerWork
from pipeline.records.rung import Rung

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

MENDED = ("SG101", "SG114")
"""Rules that a dense model fails and pruning all layers mends: the pattern, and that of layers which share an input."""
BY_GPU = ("SG105", "SG117")
"""Rules about the compute capability: here the GPU's own row of the table answers."""
BY_TYPE = ("SG106", "SG107")
"""Rules about the type: open for float32 only, which counts as float16 here."""
TRANSPOSED = "ConvTranspose"

Shapes = dict[str, list[int]]


class Work(NamedTuple):
    """Layers whose work is known, and the names of those whose shapes are not."""

    layers: list[LayerWork]
    unknown: list[str]
    inputs: Shapes


def measure_work(model: Path, checked: list[CheckedLayer], given: Mapping[str, list[int]], batch: int | None, dtype: str) -> Work:
    """Work of every checked layer of the main graph.

    Args:
        model: The ONNX file.
        checked: Its layers, as `check` left them.
        given: Shapes of inputs by name; they replace the file's.
        batch: Size of the first axis of inputs where the file leaves it open.
        dtype: Type that weights and activations are counted in, such as `float16`.

    Raises:
        InputError: an input's shape is open and was not given, or is given wrongly.
    """
    proto = _with_shapes(model, given, batch)
    shapes, nodes = _inferred(proto), _nodes(proto)
    layers, unknown = [], []
    for item in checked:
        node = nodes.get(item.node) if not item.graph else None
        work = _work(item, node, shapes, ITEM_BYTES[dtype]) if node is not None else None
        if work is None:
            unknown.append(item.node)
        else:
            layers.append(work)
    return Work(layers, unknown, {value.name: shapes[value.name] for value in _inputs(proto) if value.name in shapes})


def _inputs(proto: ModelProto) -> list[ValueInfoProto]:
    held = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in held]


def _with_shapes(model: Path, given: Mapping[str, list[int]], batch: int | None) -> ModelProto:
    """The model's skeleton (no external data) with every input's shape fixed."""
    import onnx

    proto = onnx.load(str(model), load_external_data=False)
    names = [value.name for value in _inputs(proto)]
    for name in given:
        if name not in names:
            raise InputError(f"the model has no input {name!r}", where=str(model), hint=f"its inputs: {', '.join(names)}")
    for value in _inputs(proto):
        dims = value.type.tensor_type.shape.dim
        wanted = given.get(value.name)
        if wanted is not None and len(wanted) != len(dims):
            raise InputError(f"input {value.name!r} has {len(dims)} axes, {len(wanted)} were given", where=str(model))
        for axis, dim in enumerate(dims):
            dim.dim_value = _size(value.name, axis, dim.dim_value, wanted, batch, model)
    del proto.graph.value_info[:]  # they may hold open shapes that inference would keep
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return proto


def _size(name: str, axis: int, fixed: int, wanted: list[int] | None, batch: int | None, model: Path) -> int:
    """One axis of one input: the file's size, else the given one, else for the first axis the batch."""
    given = wanted[axis] if wanted else batch if axis == 0 else None
    if fixed > 0:
        if wanted and given != fixed:
            raise InputError(f"axis {axis} of input {name!r} is {fixed} in the model, {given} was given", where=str(model))
        return fixed
    if not given:
        hint = f"--batch N for its first axis, or --shape {name}=1x3x224x224"
        raise InputError(f"axis {axis} of input {name!r} is open", where=str(model), hint=hint)
    return given


def _inferred(proto: ModelProto) -> Shapes:
    """Shapes of all values that ONNX's inference knows wholly."""
    import onnx

    try:
        found = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        raise InputError(f"the shapes do not fit the model: {str(error).splitlines()[0]}", hint="check --shape and --batch") from None
    shapes: Shapes = {tensor.name: list(tensor.dims) for tensor in found.initializer}
    for value in (*found.input, *found.value_info, *found.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape") and all(dim.dim_value > 0 for dim in dims):
            shapes[value.name] = [dim.dim_value for dim in dims]
    return shapes


def _nodes(proto: ModelProto) -> dict[str, NodeProto]:
    from pipeline.graph.scopes import node_name

    return {node_name(node): node for node in proto.graph.node}


def _work(item: CheckedLayer, node: NodeProto, shapes: Shapes, item_bytes: int) -> LayerWork | None:
    """Operations of one operator: two for every product of a weight and an activation."""
    data = [shapes.get(name) for position, name in enumerate(node.input) if name and position != item.operand and position < 2]
    out = shapes.get(node.output[0])
    if out is None or item.shape is None or item.axis is None or not data or data[0] is None:
        return None
    could, why = could_be_eligible(item)
    return LayerWork(
        node=item.node,
        op=item.op,
        flops=_flops(item, data[0], out),
        weight_bytes=prod(item.shape) * item_bytes,
        input_bytes=prod(data[0]) * item_bytes,
        output_bytes=prod(out) * item_bytes,
        could=could,
        why=why,
    )


def _flops(item: CheckedLayer, data: list[int], out: list[int]) -> int:
    shape = item.shape or []
    if item.op == TRANSPOSED:  # every input value meets every weight of its channel
        return 2 * prod(data) * prod(shape[1:])
    if "Conv" in item.op:  # weight [K, C/g, *kernel]: every output value is a sum over C/g and the kernel
        return 2 * prod(out) * prod(shape[1:])
    return 2 * prod(out) * shape[item.axis or 0]


def could_be_eligible(item: CheckedLayer) -> tuple[Rung, str]:
    """Whether the layer could be eligible once its weights are 2:4, by the rules apart from the pattern itself."""
    others = [rule for rule in item.rules if rule.id not in (*MENDED, *BY_GPU)]
    failed = next((rule for rule in others if rule.outcome is Outcome.FAIL), None)
    if failed is not None:
        return Rung.NO, f"{failed.id} {failed.text}"
    unknown = next((rule for rule in others if rule.outcome is Outcome.UNKNOWN and rule.id not in BY_TYPE), None)
    return (Rung.UNKNOWN, f"{unknown.id} {unknown.text}") if unknown else (Rung.YES, "")
