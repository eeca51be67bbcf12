"""Read an ONNX file without its weights: a skeleton message, and where in the file each tensor's values lie.

A protobuf parser copies every weight into memory, twice. This module walks the wire format instead (field tags and
lengths, protobuf.dev/programming-guides/encoding) and leaves out each tensor's value field; in its place stands an entry
that points into the file. The skeleton of a model of any size is small and is parsed by onnx as usual; the values are
then read through a memory map, and `prune` can change them in place, so that all other bytes of the file stay as they are.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from pipeline.errors import InputError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 100

# Which length-delimited fields of which onnx.proto message lead to tensors: message -> field -> message.
_PATHS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
# Value fields of TensorProto. Those of fixed-size elements are left out; numbers of variable length stay for protobuf to read.
_PAYLOADS = {4: "float_data", 5: "int32_data", 9: "raw_data", 10: "double_data"}
_KEPT = "int32_data"


@dataclass(frozen=True)
class Payload:
    """Where in the file the values of one tensor lie."""

    field: str
    offset: int
    length: int


@dataclass
class Skeleton:
    """A model's bytes without the values of its tensors."""

    data: bytes
    key: str
    """Key of the `external_data` entry whose value is an index into `payloads`; random, so that no file can forge it."""
    payloads: list[Payload] = field(default_factory=list)


class _BrokenError(Exception):
    """The bytes are not well-formed protobuf."""


def skeleton(data: memoryview, *, threshold: int, where: str) -> Skeleton:
    """Leave out the values of every tensor whose values take at least `threshold` bytes.

    Raises:
        InputError: the bytes are cut or are no protobuf message.
    """
    walker = _Walker(data, threshold)
    try:
        parts = walker.message(0, len(data), "model", 0)
    except (_BrokenError, IndexError) as error:
        raise InputError(
            f"not a whole ONNX file ({error or 'it ends within a field'})",
            where=where,
            hint="the file may be cut short; fetch or export it again",
        ) from None
    return Skeleton(data=b"".join(parts), key=walker.key, payloads=walker.payloads)


class _Walker:
    """Copies messages as ranges of the file, descending only into those large enough to hold a payload."""

    def __init__(self, data: memoryview, threshold: int) -> None:
        self.data = data
        self.threshold = threshold
        self.key = f"sparsegate.{secrets.token_hex(8)}"
        self.payloads: list[Payload] = []

    def message(self, start: int, end: int, kind: str, depth: int) -> list[bytes | memoryview]:
        """The parts of one message's skeleton."""
        if depth > _MAX_DEPTH:
            raise _BrokenError(f"messages are nested deeper than {_MAX_DEPTH}")
        if kind == "tensor":
            return self._tensor(start, end)
        children = _PATHS[kind]
        parts: list[bytes | memoryview] = []
        kept = at = start
        while at < end:
            number, wire, body, stop = self._field(at, end)
            if wire == _BYTES and number in children and stop - body >= self.threshold:
                inner = self.message(body, stop, children[number], depth + 1)
                parts += [self.data[kept:at], _tag(number), _varint(sum(map(len, inner))), *inner]
                kept = stop
            at = stop
        parts.append(self.data[kept:end])
        return parts

    def _tensor(self, start: int, end: int) -> list[bytes | memoryview]:
        found: list[tuple[int, int, int, int]] = []
        at = start
        while at < end:
            number, wire, body, stop = self._field(at, end)
            if number in _PAYLOADS and wire == _BYTES:
                found.append((number, at, body, stop))
            at = stop
        # Values given in several pieces are legal and rare: protobuf itself puts those together.
        if len(found) != 1 or found[0][3] - found[0][2] < self.threshold:
            return [self.data[start:end]]
        number, at, body, stop = found[0]
        entry = _bytes(1, self.key.encode()) + _bytes(2, str(len(self.payloads)).encode())
        self.payloads.append(Payload(_PAYLOADS[number], body, stop - body))
        if _PAYLOADS[number] == _KEPT:
            return [self.data[start:end], _bytes(13, entry)]
        return [self.data[start:at], self.data[stop:end], _bytes(13, entry)]

    def _field(self, at: int, end: int) -> tuple[int, int, int, int]:
        """Field number, wire type, where its body starts and where the field ends."""
        tag, body = self._read_varint(at)
        number, wire = tag >> 3, tag & 7
        if not number:  # as in a file of zeros, which would be walked byte by byte
            raise _BrokenError(f"field number 0 at byte {at}")
        if wire == _BYTES:
            length, body = self._read_varint(body)
            stop = body + length
        elif wire == _VARINT:
            _, stop = self._read_varint(body)
        elif wire in (_FIXED32, _FIXED64):
            stop = body + (4 if wire == _FIXED32 else 8)
        else:
            raise _BrokenError(f"unknown wire type {wire} at byte {at}")
        if stop > end:
            raise _BrokenError(f"a field at byte {at} runs past its end")
        return number, wire, body, stop

    def _read_varint(self, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
            if shift > 63:
                raise _BrokenError(f"a number at byte {at} is too long")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int) -> bytes:
    return _varint(number << 3 | _BYTES)


def _bytes(number: int, body: bytes) -> bytes:
    return _tag(number) + _varint(len(body)) + body
