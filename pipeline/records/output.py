"""output.json: what makes a stage's folder complete. Written last; a folder without it is not an output."""

from __future__ import annotations

from pipeline.records.artifact import Artifact
from pipeline.records.io import Record


class Output(Record, frozen=True, kw_only=True, tag="sparsegate.output/1"):
    """One stored stage output."""

    stage: str
    key: str
    """Hex sha256 of `parts`."""
    parts: dict[str, object]
    """What the key was made from, for people who wonder why a stage ran again."""
    files: list[Artifact]
    """Every file of the folder but this one."""
    digest: str
    """sha256 over the files' paths and digests: what later stages depend on."""
    finished: str


def stage_digest(files: list[Artifact]) -> str:
    """sha256 over paths and digests, independent of order."""
    import hashlib

    text = "\n".join(f"{file.sha256}  {file.path}" for file in sorted(files, key=lambda file: file.path))
    return hashlib.sha256(text.encode()).hexdigest()
