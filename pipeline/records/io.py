"""Reading and writing records: versioned, atomic, refused when newer than this program."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from pipeline.errors import InputError
from pipeline.paths import unreadable

CHUNK_BYTES = 1 << 20


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a record. Readers ignore fields that they do not know."""


class Record(Part, frozen=True, kw_only=True, tag_field="schema"):
    """A versioned document: its first key is `"schema": "sparsegate.<name>/<n>"`, given as the subclass's `tag`."""


AnyRecord = TypeVar("AnyRecord", bound=Record)


class _Head(msgspec.Struct):
    schema: str | None = None


def schema_of(kind: type[Record]) -> str:
    """The schema id of a record type, such as `sparsegate.tactics/1`."""
    return str(kind.__struct_config__.tag)


def encode(record: Record) -> bytes:
    """The record as indented JSON: the same record gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(record, order="deterministic"), indent=1) + b"\n"


def decode(data: bytes, kind: type[AnyRecord], *, where: str = "record") -> AnyRecord:
    """Decode JSON into a record of type `kind`.

    Raises:
        InputError: not JSON, another record, a newer version, or a field of the wrong type.
    """
    wanted = schema_of(kind)
    try:
        found = msgspec.json.decode(data, type=_Head).schema
    except msgspec.DecodeError as error:  # includes ValidationError: the top level is no object
        raise InputError(f"not a readable JSON record ({error})", where=where, hint=f"expected a {wanted} document") from None
    if found != wanted:
        raise _wrong_schema(found, wanted, where)
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise InputError(f"not a valid {wanted}: {error}", where=where, hint="the file was edited or damaged; make it again") from None


def _wrong_schema(found: str | None, wanted: str, where: str) -> InputError:
    name, _, version = wanted.rpartition("/")
    found_name, _, found_version = (found or "").rpartition("/")
    if found_name == name and found_version.isdigit() and int(found_version) > int(version):
        return InputError(
            f"written by a newer sparsegate ({found}; this one reads up to {wanted})", where=where, hint="pip install -U sparsegate"
        )
    return InputError(
        f"expected a {wanted} document, found {found or 'no schema'}", where=where, hint="give the file that this command reads"
    )


def read(path: Path, kind: type[AnyRecord]) -> AnyRecord:
    """Read one record from a file; errors as `decode`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    return decode(data, kind, where=str(path))


def write(path: Path, record: Record) -> None:
    """Write one record atomically."""
    write_bytes(path, encode(record))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step: a reader sees the old bytes or the new ones, never a part."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of the one at `path` in one step when all is written.

    Raises:
        OSError: of `path`, where the system names no file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a write names none
            error.filename = str(path)
        raise


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file's bytes, read in bounded memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def json_schema(kind: type[Record]) -> dict[str, Any]:
    """The JSON Schema of a record type."""
    return msgspec.json.schema(kind, schema_hook=_anything)


def _anything(kind: type) -> dict[str, Any]:
    """`object` fields hold any JSON value."""
    if kind is object:
        return {"description": "any JSON value"}  # an empty schema counts as none
    raise NotImplementedError  # msgspec asks for it where a hook does not know a type
