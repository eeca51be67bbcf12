"""Where constants begin: initializers, sparse tensors and Constant nodes, read when something asks for their values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from pipeline.graph.dtypes import ELEMENT_TYPES
from pipeline.graph.model import Model
from pipeline.graph.scopes import Call, Const
from pipeline.graph.tensors import Stored
from pipeline.graph.values import Value

if TYPE_CHECKING:
    from onnx import SparseTensorProto, TensorProto


def size_bytes(tensor: TensorProto) -> int:
    kind = ELEMENT_TYPES.get(tensor.data_type)
    return (prod(tensor.dims) * kind.bits + 7) // 8 if kind else 0


def _once(make: Callable[[], Stored]) -> Callable[[], Value]:
    cell: list[Value] = []

    def load() -> Value:
        if not cell:
            cell.append(make().leaf())
        return cell[0]

    return load


def initializer(model: Model, tensor: TensorProto) -> Const:
    return Const(load=_once(lambda: model.tensors.stored(tensor)), name=tensor.name)


def sparse(model: Model, tensor: SparseTensorProto, name: str) -> Const:
    return Const(load=_once(lambda: model.tensors.expanded(tensor, name)), name=name, sparse=True)


def constant(model: Model, call: Call) -> Const | None:
    """What a Constant node holds; None for strings and sequences."""
    import numpy as np

    name = call.node.output[0] if call.node.output else None
    lists = {
        "value_float": ("f", "float32"),
        "value_floats": ("floats", "float32"),
        "value_int": ("i", "int64"),
        "value_ints": ("ints", "int64"),
    }
    tensor = call.attribute("value")
    if tensor is not None:
        held = tensor.t
        return Const(load=_once(lambda: model.tensors.stored(held, name or "")), name=name)
    held_sparse = call.attribute("sparse_value")
    if held_sparse is not None:
        return sparse(model, held_sparse.sparse_tensor, name or "")
    for key, (field, dtype) in lists.items():
        found = call.attribute(key)
        if found is not None:
            array = np.asarray(getattr(found, field), dtype=dtype)
            value = Stored(name or "", array.shape, array.dtype, array.reshape(-1)).leaf()
            return Const(load=partial(_same, value), name=name)
    return None


def _same(value: Value) -> Value:
    return value
