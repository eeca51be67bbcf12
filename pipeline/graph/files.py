"""The bytes behind a model: its own file and its external data, memory-mapped, and never outside the model's folder."""

from __future__ import annotations

import hashlib
import mmap
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from pipeline.errors import InputError
from pipeline.paths import unreadable

if TYPE_CHECKING:
    import numpy as np


class Hasher:
    """Computes digests one after the other on one thread, beside other work."""

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._lock = Lock()
        self._working = False

    def submit(self, job: Callable[[], None]) -> None:
        """Queue a job. The thread ends when none is left, and with the process whatever is left."""
        with self._lock:
            self._jobs.append(job)
            if self._working:
                return
            self._working = True
        Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._working = False
                    return
                job = self._jobs.popleft()
            job()


class MappedFile:
    """A file mapped for reading; with a hasher its digest is computed while the pattern is read."""

    def __init__(self, path: Path, hasher: Hasher | None) -> None:
        import numpy as np

        self.path = path
        try:
            with path.open("rb") as file:
                self.size = file.seek(0, 2)
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None
        except OSError as error:
            raise unreadable(path, error) from None
        self.bytes: np.ndarray = np.frombuffer(self._map if self._map else b"", dtype=np.uint8)
        self._digest = ""
        self._hashed = Event()
        if hasher is not None:
            hasher.submit(self._hash)

    @property
    def data(self) -> memoryview:
        """The whole file."""
        return memoryview(self._map if self._map else b"")

    def release(self) -> None:
        """Let the system take back the pages that were read: what is resident stays small, and a later read finds them cached."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def sha256(self) -> str:
        """Hex digest of the file's bytes; the file was opened with a hasher.

        Raises:
            InputError: the file went away meanwhile.
        """
        self._hashed.wait()
        if not self._digest:
            raise InputError("the file went away while it was read", where=str(self.path))
        return self._digest

    def _hash(self) -> None:
        # Read, not mapped: nobody may be waiting any more, and a mapped file that is cut meanwhile would end the process.
        try:
            with self.path.open("rb") as file:
                self._digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            self._digest = ""
        self._hashed.set()


class Folder:
    """External data files of one model, opened when a tensor first needs them."""

    def __init__(self, model: Path, hasher: Hasher | None) -> None:
        self.root = model.parent.resolve()
        self.hasher = hasher
        self.files: dict[str, MappedFile] = {}

    def open(self, location: str, tensor: str, model: Path) -> MappedFile:
        """The file at a location relative to the model.

        Raises:
            InputError: the location is absolute, leads out of the folder (also through a link), or cannot be read.
        """
        if location not in self.files:
            self.files[location] = MappedFile(self._inside(location, tensor, model), self.hasher)
        return self.files[location]

    def _inside(self, location: str, tensor: str, model: Path) -> Path:
        where = f"{model}: tensor {tensor!r}"
        if not location or "\0" in location or Path(location).is_absolute() or "\\" in location:
            raise InputError(f"its external data has the location {location!r}, which is no path relative to the model", where=where)
        path = self.root / location
        real = path.resolve()
        if not real.is_relative_to(self.root):
            hint = "external data must lie beside the model; copy the file there (a link out of the folder is not followed)"
            raise InputError(f"its external data {location!r} lies outside the model's folder", where=where, hint=hint)
        if not real.is_file():
            raise InputError(f"its external data file {location!r} does not exist", where=where, hint="copy it beside the model")
        return real
