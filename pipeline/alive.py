"""Whether the process that makes a run still lives, asked from outside.

A run holds a lock on a file in its folder for as long as it lives; the kernel lets go of it when the process ends, however it
ends. So no other process that got its number is taken for it. A lock that nobody holds says nothing about another host, whose
locks may not be seen here: there the run stays `running` until the run itself says otherwise.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from pipeline.errors import InputError
from pipeline.records.io import read
from pipeline.records.run import Run, RunProcess

LOCK_FILE = ".running"
ROOM_BYTES = 1 << 18
"""Size of the lock file: room for the last words of a run on a disk that is full by then."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STAT = Path("/proc/stat")
_handles: set[int] = set()


def _let_go() -> None:
    """In a forked child: it would keep the lock when its parent is killed."""
    while _handles:
        os.close(_handles.pop())


os.register_at_fork(after_in_child=_let_go)


@contextmanager
def held(folder: Path) -> Iterator[RunProcess]:
    """Hold a run's lock; gives what run.json says of the process. A file system without locks is no error.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    _handles.add(handle)
    with suppress(OSError):  # no room to set aside, or no such call on this file system
        os.posix_fallocate(handle, 0, ROOM_BYTES)
    try:
        yield RunProcess(pid=os.getpid(), host=platform.node(), boot=_boot(), locked=_try_lock(handle, fcntl.LOCK_EX))
    finally:
        if handle in _handles:
            _handles.remove(handle)
            (folder / LOCK_FILE).unlink(missing_ok=True)
            os.close(handle)


def make_room(folder: Path) -> None:
    """Give back the disk space that a run's lock file holds, so that its end can be written; the lock stays."""
    with suppress(OSError):
        os.truncate(folder / LOCK_FILE, 0)


def as_it_stands(run: Run, folder: Path) -> Run:
    """The run with result `killed` in place of `running` where its process is known to be gone.

    Args:
        run: As run.json has it.
        folder: The run's folder.
    """
    if run.result != "running" or not _gone(run, folder):
        return run
    try:  # it may have ended between the reading of run.json and the look at its lock
        latest = read(folder / "run.json", Run)
    except InputError:
        return run
    return replace(latest, result="killed") if latest.result == "running" else latest


def _gone(run: Run, folder: Path) -> bool:
    made = run.process
    if made is None or not made.locked or _is_locked(folder / LOCK_FILE):
        return False
    if made.boot is not None and made.boot == _boot():
        return True
    return made.host == platform.node() and (made.boot is None or _booted_after(run.started))


def _is_locked(path: Path) -> bool:
    """Whether a process holds the lock; also where that cannot be asked."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return not _try_lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _boot() -> str | None:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None


def _booted_after(moment: str) -> bool:
    """Whether this machine was started after a moment; False where that is not known."""
    try:
        seconds = next(int(line.split()[1]) for line in _STAT.read_text().splitlines() if line.startswith("btime "))
        return datetime.fromtimestamp(seconds, UTC) > datetime.fromisoformat(moment)
    except (OSError, ValueError, StopIteration):
        return False
