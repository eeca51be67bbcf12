"""What the system refuses, to read or to write: which file, why, and what to do next."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pipeline.errors import InputError, StageError

WITH_DEBUG = "the same command with --debug shows where"
REMEDIES: dict[int, str] = {
    errno.ENOSPC: "free space on the disk (sparsegate runs prune){again}",
    errno.EDQUOT: "raise the quota or remove files (sparsegate runs prune){again}",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f){again}",
    errno.EACCES: "choose another {place}, or make this one writable",
    errno.EPERM: "choose another {place}, or make this one writable",
    errno.ENOTDIR: "choose another {place}: a file stands where a folder should be",
    errno.EEXIST: "choose another {place}: a file stands where a folder should be",
    errno.EROFS: "choose a {place} on a disk that is not read-only",
    errno.EMFILE: "raise the limit on open files (ulimit -n){again}",
    errno.ENOMEM: "free memory{again}",
    errno.EIO: "the disk reports errors: choose another {place}",
}
"""Error number -> next step; `again`: what then follows."""


def unreadable(path: str | Path, error: OSError, what: str = "the file") -> InputError:
    """The error that a user sees when a file of theirs cannot be read.

    Args:
        path: As it was given.
        error: What the system said.
        what: What the file is to its reader, such as `the recipe`.
    """
    step = _STEPS.get(error.errno or 0, _look_at)
    return InputError(f"cannot read {what}: {error.strerror or error}", where=str(path), hint=step(Path(path)))


def refused(error: OSError, what: str, *, where: str | Path | None = None, again: str = "", place: str = "folder") -> StageError:
    """The error that a user sees when the system refuses to write or to run something.

    Args:
        error: What the system said.
        what: What could not be done.
        where: The place as the user knows it; when absent the file that the system names: of a copy or a renaming the second.
        again: What comes after the remedy.
        place: What the user may choose instead.
    """
    step = REMEDIES.get(error.errno or 0, WITH_DEBUG).format(again=again, place=place)
    file = where or error.filename2 or error.filename
    return StageError(f"{what}: {error.strerror or error}", where=None if file is None else str(file), hint=step)


def missing(path: Path) -> str:
    """The next step where a path leads nowhere: the one that was meant, else where to look."""
    if (meant := near(path)) is not None:
        return f"did you mean {shlex.quote(str(meant))}?"
    folder = next((folder for folder in path.parents if folder.is_dir()), Path())
    return f"see what is there: ls -l {shlex.quote(str(folder))}"


def near(path: Path) -> Path | None:
    """What is there under nearly the same name, looked for folder by folder; None where there is nothing like it."""
    from difflib import get_close_matches

    found = Path()
    with suppress(OSError):  # a folder that may not be looked into
        for part in path.parts:
            if not (found / part).exists():
                names = sorted(entry.name for entry in found.iterdir())
                part = next(iter(get_close_matches(part, names, n=1)), part)
            found /= part
        return found if found != path and found.exists() else None
    return None


def _look_at(path: Path) -> str:
    return f"see what it is: ls -ld {shlex.quote(str(path))}"


def _look_into(path: Path) -> str:
    return f"name a file in that folder: ls {shlex.quote(str(path))}"


_STEPS: dict[int, Callable[[Path], str]] = {
    errno.ENOENT: missing,
    errno.ENOTDIR: missing,
    errno.EISDIR: _look_into,
}
"""Error number -> next step."""
