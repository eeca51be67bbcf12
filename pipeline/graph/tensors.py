"""Tensors of a model as arrays over the bytes that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import InputError
from pipeline.graph.dtypes import ELEMENT_TYPES, numpy_type
from pipeline.graph.files import Folder, Hasher, MappedFile
from pipeline.graph.values import Leaf

if TYPE_CHECKING:
    import numpy as np
    from onnx import SparseTensorProto, TensorProto

    from pipeline.graph.wire import Payload, Skeleton

EXTERNAL = 1
MOST_DENSE = 1 << 28
"""Largest number of elements to which a sparse tensor is expanded."""


class NoValuesError(Exception):
    """The tensor's values are not in the file (stripped weights), or are of a kind that no operator multiplies with."""


@dataclass(frozen=True, eq=False)
class Stored:
    """One tensor where it lies."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    flat: np.ndarray
    """Elements in C order; bytes where the type is packed."""
    bits: int = 8
    file: MappedFile | None = None
    """The file that holds the values as fixed-size elements; None: they were decoded from another form."""
    offset: int = 0
    """First byte of the values in `file`."""
    sparse: bool = False
    """Expanded from a sparse tensor."""
    varints: int = 0
    """Bytes of a packed list of variable-length numbers at `offset`, one for each element; 0: elements of fixed size."""

    def leaf(self) -> Leaf:
        """The tensor as a value."""
        if self.bits != 8:
            return Leaf(stored=self, view=self.flat, shape=self.shape, dtype=self.dtype, bits=self.bits)
        return Leaf(stored=self, view=self.flat.reshape(self.shape), shape=self.shape, dtype=self.dtype)


class Tensors:
    """Finds the values of a model's tensors: in its file, in external data, or in the message itself."""

    def __init__(self, path: Path, file: MappedFile, skeleton: Skeleton, hasher: Hasher | None) -> None:
        self.path = path
        self.file = file
        self.skeleton = skeleton
        self.folder = Folder(path, hasher)

    def files(self) -> list[MappedFile]:
        """External data files that were opened."""
        return list(self.folder.files.values())

    def release(self) -> None:
        """Let the system take back pages that were read."""
        for file in (self.file, *self.files()):
            file.release()

    def stored(self, tensor: TensorProto, name: str = "") -> Stored:
        """One tensor's values, under a name of its own or the one given (a Constant's output).

        Raises:
            InputError: they are missing, cut, or outside the model's folder.
            NoValuesError: the tensor is a stripped one, or of strings, complex numbers or an unknown type.
        """
        name = name or tensor.name
        kind = ELEMENT_TYPES.get(tensor.data_type)
        if kind is None:
            raise NoValuesError(f"element type {tensor.data_type} is not one that is read")
        shape = tuple(tensor.dims)
        if min(shape, default=0) < 0:
            raise InputError(f"its shape {list(shape)} has a negative dimension", where=self._where(name))
        dtype = numpy_type(kind.name)
        found = self._bytes(tensor, name)
        if found is None:
            listed = self._listed(tensor) if kind.bits >= 8 else None
            place = {"file": self.file, "offset": listed.offset, "varints": listed.length} if listed else {}
            return Stored(name, shape, dtype, self._decoded(tensor, shape, name), **place)  # type: ignore[arg-type]
        data, file, offset = found
        need = (prod(shape) * kind.bits + 7) // 8
        if data.size != need:
            text = f"its shape {list(shape)} of {kind.name} needs {need} bytes of values, there are {data.size}"
            raise InputError(text, where=self._where(name), hint="the file or its external data is cut; export or copy it again")
        if kind.bits < 8:
            return Stored(name, shape, dtype, data, kind.bits, file, offset)
        return Stored(name, shape, dtype, data.view(dtype), 8, file, offset)

    def expanded(self, sparse: SparseTensorProto, name: str = "") -> Stored:
        """A sparse tensor as a dense one, as the standard defines it (SparseTensorProto: linear or coordinate indices)."""
        import numpy as np

        name, shape = name or sparse.values.name, tuple(sparse.dims)
        if min(shape, default=0) < 0 or prod(shape) > MOST_DENSE:
            raise NoValuesError(f"a sparse tensor of shape {list(shape)} is too large to expand")
        values = self.stored(sparse.values).leaf().array().reshape(-1)
        indices = self.stored(sparse.indices, name).leaf().array().astype(np.int64)
        if indices.ndim == 2 and indices.shape[1] == len(shape):
            flat = np.zeros(len(indices), dtype=np.int64)
            for column, size in zip(indices.T, shape, strict=True):
                if column.size and not (column.min() >= 0 and column.max() < size):
                    raise InputError("a sparse tensor's index lies outside its shape", where=self._where(name))
                flat = flat * size + column
        else:
            flat = indices.reshape(-1)
        if flat.size != values.size or (flat.size and not (flat.min() >= 0 and flat.max() < prod(shape))):
            raise InputError("a sparse tensor's indices do not fit its values or shape", where=self._where(name))
        dense = np.zeros(prod(shape), dtype=values.dtype)
        dense[flat] = values
        return Stored(name, shape, values.dtype, dense, sparse=True)

    def _bytes(self, tensor: TensorProto, name: str) -> tuple[np.ndarray, MappedFile | None, int] | None:
        """The values as bytes, with file and offset; None where the message itself holds them in another form."""
        import numpy as np

        entries = {entry.key: entry.value for entry in tensor.external_data}
        if tensor.data_location == EXTERNAL:
            return self._external(entries, name)
        if self.skeleton.key in entries and self._listed(tensor) is None:
            payload = self.skeleton.payloads[int(entries[self.skeleton.key])]
            kind = ELEMENT_TYPES[tensor.data_type]
            # Only the field that the element type prescribes counts; another one is ignored by every reader.
            if payload.field == "raw_data" or {"float_data": "float32", "double_data": "float64"}[payload.field] == kind.name:
                return self.file.bytes[payload.offset : payload.offset + payload.length], self.file, payload.offset
            raise NoValuesError(f"{payload.field} does not hold elements of {kind.name}")
        if tensor.HasField("raw_data") and (tensor.raw_data or prod(tensor.dims) == 0):
            return np.frombuffer(tensor.raw_data, dtype=np.uint8), None, 0
        return None

    def _listed(self, tensor: TensorProto) -> Payload | None:
        """Where the tensor's int32_data lies in the file, if that is what holds its values."""
        for entry in tensor.external_data:
            if entry.key == self.skeleton.key:
                payload = self.skeleton.payloads[int(entry.value)]
                return payload if payload.field == "int32_data" else None
        return None

    def _external(self, entries: dict[str, str], name: str) -> tuple[np.ndarray, MappedFile, int]:
        file = self.folder.open(entries.get("location", ""), name, self.path)
        try:
            offset = int(entries.get("offset", "0"))
            length = int(entries.get("length", file.size - offset))
        except ValueError:
            raise InputError("the offset or length of its external data is no number", where=self._where(name)) from None
        if offset < 0 or length < 0 or offset + length > file.size:
            text = f"its external data lies at bytes {offset} to {offset + length} of {file.path.name!r}, which has {file.size}"
            raise InputError(text, where=self._where(name), hint="the data file is cut or belongs to another export; copy it again")
        return file.bytes[offset : offset + length], file, offset

    def _decoded(self, tensor: TensorProto, shape: tuple[int, ...], name: str) -> np.ndarray:
        """Values that the message holds as numbers (float_data, int32_data, ...)."""
        from onnx import numpy_helper

        fields = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
        if prod(shape) and not any(len(getattr(tensor, field)) for field in fields):
            raise NoValuesError("its values are not in the file (stripped weights?)")
        try:
            array = numpy_helper.to_array(tensor)
        except (ValueError, TypeError) as error:
            raise InputError(f"its values cannot be read: {error}", where=self._where(name)) from None
        if array.size != prod(shape):
            raise InputError(f"its shape {list(shape)} does not fit its {array.size} values", where=self._where(name))
        flat: np.ndarray = array.reshape(-1).copy()
        return flat

    def _where(self, name: str) -> str:
        return f"{self.path}: tensor {name!r}"
