"""A path that a user gave and the system refuses: what is wrong with it, and what to do next."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable
from pathlib import Path

from pipeline.errors import InputError


def unreadable(path: str | Path, error: OSError, what: str = "the file") -> InputError:
    """The error that a user sees when a file of theirs cannot be read.

    Args:
        path: As it was given.
        error: What the system said.
        what: What the file is to its reader, such as `the recipe`.
    """
    step = _STEPS.get(error.errno or 0, _look_at)
    return InputError(f"cannot read {what}: {error.strerror or error}", where=str(path), hint=step(Path(path)))


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
    for part in path.parts:
        if not (found / part).exists():
            names = sorted(entry.name for entry in found.iterdir()) if found.is_dir() else []
            part = next(iter(get_close_matches(part, names, n=1)), part)
        found /= part
    return found if found != path and found.exists() else None


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
