"""What a model or data section reads, by path and sha256: enters the keys of the stages, so it stays light."""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.records.io import sha256_file

FILES = ("checkpoint", "onnx", "npz")
FOLDERS = ("imagefolder",)
CODE = ("python",)
HASHERS = 8
LOCATION = re.compile(rb"\n\x08location\x12")
"""A tensor's external_data entry: field 1 of StringStringEntryProto is `location`, field 2 the path behind it."""


def digests(section: Mapping[str, Any], base: Path) -> dict[str, str]:
    """sha256 by path (as the recipe writes it) of everything that a `model` or `data` section reads.

    A Python file brings the modules beside it that it imports; an image folder is one digest over its listing and
    contents; scikit-learn's digits are their package's version. Imports neither numpy nor torch nor sklearn.

    Raises:
        InputError: something named is not there.
    """
    found: dict[str, str] = {}
    if section.get("digits"):
        from pipeline.sources import digits

        found |= digits.digests()
    for key in CODE:
        if section.get(key):
            found |= _code(str(section[key]), base)
    for name in [*(section[key] for key in FILES if section.get(key)), *section.get("files", [])]:
        found[str(name)] = _file(base / name, str(name))
        found |= _external(base / name, str(name))
    for key in FOLDERS:
        if section.get(key):
            found[str(section[key])] = folder_digest(base / section[key])
    if isinstance(section.get("slices"), Mapping):
        below = section["slices"]
        if below.get("csv"):
            found[str(below["csv"])] = _file(base / below["csv"], str(below["csv"]))
        if below.get("python"):
            found |= _code(str(below["python"]), base)
    return dict(sorted(found.items()))


def _code(name: str, base: Path) -> dict[str, str]:
    from pipeline.sources.code import source_files

    found = {}
    for path in source_files(name, base):
        try:
            label = path.relative_to(base.resolve()).as_posix()
        except ValueError:
            label = path.as_posix()
        found[label] = _file(path, name)
    return found


def _file(path: Path, name: str) -> str:
    if path.is_dir():
        return folder_digest(path)
    try:
        return sha256_file(path)
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}", where=name, hint="paths in a recipe start at the recipe's folder"
        ) from None


def _external(path: Path, name: str) -> dict[str, str]:
    """The files that an ONNX file says its weights are kept in, found without reading it as ONNX."""
    if path.suffix != ".onnx" or path.stat().st_size == 0:
        return {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        locations = {text for match in LOCATION.finditer(data) if (text := _text_at(data, match.end()))}
    folder = path.parent.resolve()
    beside = {location: (folder / location).resolve() for location in sorted(locations)}
    return {
        (Path(name).parent / location).as_posix(): sha256_file(other)
        for location, other in beside.items()
        if other.is_file() and other.is_relative_to(folder)
    }


def _text_at(data: mmap.mmap, start: int) -> str:
    """The text behind a protobuf length at an offset; empty where that is none."""
    length = shift = 0
    for position in range(start, min(start + 3, len(data))):
        length |= (data[position] & 0x7F) << shift
        shift += 7
        if data[position] < 0x80:
            return data[position + 1 : position + 1 + length].decode("utf-8", "replace").replace("\0", "")
    return ""


def folder_digest(folder: Path) -> str:
    """sha256 over the sorted relative paths and contents of all files below a folder; hidden ones are left out.

    Raises:
        InputError: no such folder, or no file in it.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}", where=str(folder), hint="paths in a recipe start at the recipe's folder")
    digest = hashlib.sha256()
    files = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    visible = [(name, path) for name, path in files if not any(part.startswith(".") for part in name.split("/"))]
    if not visible:
        raise InputError(f"the folder {folder} holds no file", where=str(folder))
    with ThreadPoolExecutor(HASHERS) as pool:  # hashing works outside Python's lock, and many small files wait for the disk
        for (name, _), content in zip(visible, pool.map(sha256_file, (path for _, path in visible)), strict=True):
            digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()
