"""The files behind the paths that were given: folders opened up, each file once, and what cannot be looked into told."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import msgspec

from pipeline.errors import InputError
from pipeline.paths import unreadable
from pipeline.records.tactics import Skipped

MAX_FOLDER_FILES = 10_000


class Found(msgspec.Struct):
    """What the paths lead to."""

    files: list[tuple[str, bool]] = []
    """(path, named); `named` is False for a file that only a folder brought in: it may be anything."""
    skipped: list[Skipped] = []
    """What in a folder cannot be looked into."""


def skip(path: str, error: InputError) -> Skipped:
    """A file of a folder that cannot be read, with what its error says."""
    return Skipped(path=path, why=error.what, hint=error.hint)


def expand(sources: Sequence[str]) -> Found:
    """The files behind the given paths, folders opened up in sorted order, each file once however many names lead to it.

    Only regular files of a folder are opened: a pipe or a socket would wait for a writer that may never come.

    Raises:
        InputError: a folder cannot be opened, or holds too many files.
    """
    found = Found()
    folders = {source for source in sources if source != "-" and Path(source).is_dir()}
    named = {_file(source) for source in sources if source not in folders}
    seen: set[_File] = set()
    for source in dict.fromkeys(sources):
        if source not in folders:
            found.files += [(source, True)] if _first(source, seen) else []
            continue
        inside, skipped = _inside(Path(source))
        new = _once(inside, seen | named)
        found.files += [(path, False) for path in new]
        found.skipped += skipped
        seen.update(map(_file, new))
    return found


_File = tuple[int, int] | str
"""What two names of one file have in common."""


def _file(path: str) -> _File:
    with suppress(OSError, ValueError):  # opening it says why
        if path != "-" and S_ISREG((status := Path(path).stat()).st_mode):
            return status.st_dev, status.st_ino
    return path


def _first(path: str, seen: set[_File]) -> bool:
    """Whether no other name of this file was met; from now on it was."""
    new = (file := _file(path)) not in seen
    seen.add(file)
    return new


def _once(inside: list[str], seen: set[_File]) -> list[str]:
    """The files that were not seen, in order, a file by its own name where links lead to it, too."""
    own_names_first = sorted(inside, key=lambda path: Path(path).is_symlink())
    kept = {path for path in own_names_first if _first(path, seen)}
    return [path for path in inside if path in kept]


def _inside(folder: Path) -> tuple[list[str], list[Skipped]]:
    """Regular files at any depth, sorted; links to folders are not followed."""
    refused: list[OSError] = []
    files: list[Path] = []
    skipped: list[Skipped] = []
    for at, folders, names in os.walk(folder, onerror=refused.append):
        skipped += [_link(path) for name in folders if _is_link(path := Path(at, name)) and not _within(path, folder)]
        for path in (Path(at, name) for name in names):
            try:
                files += [path] if S_ISREG(path.stat().st_mode) else []
            except OSError as error:
                skipped.append(_leads_nowhere(path) if _is_link(path) else skip(str(path), unreadable(path, error)))
        if len(files) > MAX_FOLDER_FILES:
            hint = f"name the logs, or a folder of at most {MAX_FOLDER_FILES} files"
            raise InputError(f"the folder holds more than {MAX_FOLDER_FILES} files", where=str(folder), hint=hint)
    for denied in refused:
        if Path(denied.filename) == folder:
            raise unreadable(folder, denied, "the folder")
        skipped.append(skip(denied.filename, unreadable(denied.filename, denied, "the folder")))
    return list(map(str, sorted(files))), sorted(skipped, key=lambda one: one.path)


def _is_link(path: Path) -> bool:
    """Whether it is known to be a link: in a folder whose files may only be listed none is."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def _within(link: Path, folder: Path) -> bool:
    """Whether a link leads to a folder that is walked anyway."""
    return link.resolve().is_relative_to(folder.resolve())


def _leads_nowhere(path: Path) -> Skipped:
    return Skipped(path=str(path), why="a link to no file that can be read", hint=f"see where it leads: ls -l {shlex.quote(str(path))}")


def _link(path: Path) -> Skipped:
    return Skipped(path=str(path), why="a link to a folder outside of this one, which is not followed", hint="name that folder, too")
