"""A file that a stage made or consumed, with the digest that identifies its bytes."""

from __future__ import annotations

from pathlib import Path

from pipeline.records.io import Part, sha256_file


class Artifact(Part, frozen=True, kw_only=True):
    """A file by path (relative to the folder of the record that names it), sha256 (hex) and size."""

    path: str
    sha256: str
    size_bytes: int

    @classmethod
    def of(cls, file: Path, *, relative_to: Path) -> Artifact:
        """Hash `file` and name it relative to a folder."""
        return cls(path=file.relative_to(relative_to).as_posix(), sha256=sha256_file(file), size_bytes=file.stat().st_size)
