"""A model opened for reading: the skeleton message, and its tensors over the mapped files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.graph.files import Hasher, MappedFile
from pipeline.graph.tensors import EXTERNAL, Tensors
from pipeline.graph.wire import skeleton

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

THRESHOLD = 1024
"""Values of fewer bytes stay in the message: cheaper there than an entry of their own."""


@dataclass(frozen=True)
class Model:
    """An open model."""

    path: Path
    proto: ModelProto
    """Without the values of large tensors: `tensors` has them."""
    tensors: Tensors
    file: MappedFile


def open_model(path: Path, *, threshold: int = THRESHOLD, hashed: bool = False) -> Model:
    """Open an ONNX file.

    Args:
        path: The model; external data is opened from its folder when a tensor needs it.
        threshold: Values of at least so many bytes are left in the file.
        hashed: Whether to compute digests of the files, beside other work.

    Raises:
        InputError: it cannot be read, is cut, or is no ONNX model.
    """
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    hasher = Hasher() if hashed else None
    file = MappedFile(path, hasher)
    where = str(path)
    if not file.size:
        raise InputError("the file is empty", where=where, hint="export the model again")
    bones = skeleton(file.data, threshold=threshold, where=where)
    try:
        proto = ModelProto.FromString(bones.data)
    except DecodeError:
        raise InputError(
            "not an ONNX model (its protobuf does not parse)", where=where, hint="give a file made by an ONNX exporter"
        ) from None
    if not proto.HasField("graph") or (not proto.graph.node and not proto.graph.initializer and not proto.ir_version):
        raise InputError("not an ONNX model (it holds no graph)", where=where, hint="give a file made by an ONNX exporter")
    return Model(path, proto, Tensors(path, file, bones, hasher), file)


def open_external(model: Model) -> list[str]:
    """Open every file of external data that the model names.

    Returns:
        Their paths, relative to the model's folder.

    Raises:
        InputError: one is not there, or lies outside the model's folder.
    """
    for tensor in _tensors(model.proto):
        if tensor.data_location == EXTERNAL:
            location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
            model.tensors.folder.open(location, tensor.name, model.path)
    return list(model.tensors.folder.files)


def _tensors(message: Any) -> Iterator[TensorProto]:
    """Every TensorProto of a message, at any depth."""
    from onnx import TensorProto

    if isinstance(message, TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if field.is_repeated else [value]:
            yield from _tensors(part)
