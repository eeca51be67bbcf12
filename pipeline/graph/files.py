"""The bytes behind a model: its own file and its external data, memory-mapped, and never outside the model's folder."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from pipeline.errors import InputError

if TYPE_CHECKING:
    import numpy as np


class MappedFile:
    """A file mapped for reading; its digest can be computed on another thread while the pattern is read."""

    def __init__(self, path: Path, *, hashed: bool) -> None:
        import numpy as np

        self.path = path
        try:
            self._file = path.open("rb")
            self.size = self._file.seek(0, 2)
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None
        except OSError as error:
            raise InputError(f"cannot read the file: {error.strerror or error}", where=str(path)) from None
        self.bytes: np.ndarray = np.frombuffer(self._map if self._map else b"", dtype=np.uint8)
        self._digest = ""
        self._hasher = Thread(target=self._hash, daemon=True)
        self._hashed = hashed
        if hashed:
            self._hasher.start()
        else:
            self._file.close()

    @property
    def data(self) -> memoryview:
        """The whole file."""
        return memoryview(self._map if self._map else b"")

    def release(self) -> None:
        """Let the system take back the pages that were read: what is resident stays small, and a later read finds them cached."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def sha256(self) -> str:
        """Hex digest of the file's bytes; empty where the file was opened without."""
        if self._hashed:
            self._hasher.join()
        return self._digest

    def _hash(self) -> None:
        with self._file as file:
            file.seek(0)
            self._digest = hashlib.file_digest(file, "sha256").hexdigest()


class Folder:
    """External data files of one model, opened when a tensor first needs them."""

    def __init__(self, model: Path, *, hashed: bool) -> None:
        self.root = model.parent.resolve()
        self.hashed = hashed
        self.files: dict[str, MappedFile] = {}

    def open(self, location: str, tensor: str, model: Path) -> MappedFile:
        """The file at a location relative to the model.

        Raises:
            InputError: the location is absolute, leads out of the folder (also through a link), or cannot be read.
        """
        if location not in self.files:
            self.files[location] = MappedFile(self._inside(location, tensor, model), hashed=self.hashed)
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
