"""Named arrays in .npz files: a user's own, and measured columns under a head of names and facts. Never a pickle.

A file of columns holds one array [n] per column, all of one length, and `head`: JSON as bytes.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from pipeline.errors import InputError
from pipeline.records import io

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BYTES = 4 << 30
"""Largest unpacked size of a file of columns."""

Head = TypeVar("Head")

_HEAD = "head"
_NPY = ".npy"
_UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, MemoryError, NotImplementedError, RuntimeError),
    *(SyntaxError, TokenError, zipfile.BadZipFile, zlib.error, msgspec.MsgspecError),
)
"""What `zipfile` and numpy raise where sizes, names, flags, methods or an array's header (a Python literal) are damaged."""


def arrays(path: Path, *, hint: str) -> dict[str, NDArray[Any]]:
    """Read every array of a .npz file, whatever its size.

    Args:
        path: The file.
        hint: How the user makes such a file.

    Returns:
        Array by name, in the file's order.

    Raises:
        InputError: the file is absent, damaged, a single array, or holds Python objects.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
                raise InputError("a single array, not a .npz file", where=str(path), hint=hint)
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(_NPY): _array(archive, name) for name in archive.namelist()}
    except _UNREADABLE as error:
        raise InputError(f"not a readable .npz file ({error})", where=str(path), hint=hint) from None


def write_columns(path: Path, head: object, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write a file in one step, compressed; the same head and columns give the same bytes.

    Args:
        path: The file; its folder is made.
        head: What msgspec can encode as JSON.
        columns: Array [n] by name, none of Python objects.
    """
    members = {_HEAD: np.frombuffer(msgspec.json.encode(head), np.uint8), **columns}
    with io.replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            with archive.open(name + _NPY, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_columns(
    path: Path, kind: type[Head], dtypes: Callable[[Head], Mapping[str, type[Any]]], *, what: str
) -> tuple[Head, dict[str, NDArray[Any]]]:
    """Read what `write_columns` wrote.

    Args:
        path: The file.
        kind: Type of the head, as msgspec decodes it.
        dtypes: From the head to the dtype of every column; others in the file are not read.
        what: What the columns are, in the plural: the subject of the errors.

    Returns:
        The head, and array [n] by column, of the dtypes asked for.

    Raises:
        InputError: not such a file, too large, damaged, a column that is absent or of another dtype, or columns of several lengths.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise _refused(f"{what} would unpack to more than {MAX_BYTES >> 30} GiB", path)
            head = msgspec.json.decode(_array(archive, _HEAD + _NPY).tobytes(), type=kind)
            wanted = dtypes(head)
            absent = [name for name in wanted if name + _NPY not in archive.namelist()]
            if absent:
                raise _refused(f"{what} are damaged: there is no column {absent[0]!r}", path)
            columns = {name: _array(archive, name + _NPY) for name in wanted}
    except _UNREADABLE as error:
        raise _refused(f"not a readable {what} file ({error})", path) from None
    for name, column in columns.items():
        if not np.issubdtype(column.dtype, wanted[name]):
            raise _refused(f"{what} are damaged: the column {name!r} holds {column.dtype}, not {wanted[name].__name__}", path)
    shapes = {column.shape for column in columns.values()}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise _refused(f"{what} are damaged: columns do not fit together, their shapes are {sorted(shapes)}", path)
    return head, columns


def _array(archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    with archive.open(member) as file:
        array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        if file.read(1):  # the checksum is looked at where a member ends, so a header that promises too little would pass
            raise ValueError(f"{member} holds more than its header says")
    return array


def _refused(why: str, path: Path) -> InputError:
    return InputError(why, where=str(path), hint="measure again")
