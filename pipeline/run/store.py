"""The content-addressed store of stage outputs: `engines/<recipe>/<stage>-<key12>/`.

A stage works in `<stage>-<key12>.partial` under a file lock; the folder gets its final name in one step, with
`output.json` written last. So a folder with the final name is whole, and a killed run leaves only a `.partial` that
the next run goes on from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.errors import SparsegateError, StageError, TamperedError
from pipeline.records import io
from pipeline.records.artifact import Artifact
from pipeline.records.output import Output, stage_digest
from pipeline.records.run import RECORD_FILE
from pipeline.run.causes import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTPUT_FILE = "output.json"
FREE_BYTES = 64 << 20
"""Below this much free space a stage is not begun."""


def key_of(parts: Mapping[str, Any]) -> str:
    """Hex sha256 of the parts as canonical JSON."""
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


@dataclass(frozen=True)
class Stored:
    """A complete output in the store."""

    folder: Path
    output: Output
    cached: bool

    def record_bytes(self) -> bytes:
        """The stage's record as JSON."""
        return (self.folder / RECORD_FILE).read_bytes()


class Store:
    """The outputs of one recipe.

    Args:
        root: `engines/<recipe>` in the workspace.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, stage: str, key: str) -> Path:
        """Where a complete output lies."""
        return self.root / f"{stage}-{key[:12]}"

    def find(self, stage: str, key: str) -> Stored | None:
        """The verified output, or None where it is not there.

        Raises:
            TamperedError: a file is missing or no longer has the bytes that were recorded.
        """
        folder = self.folder(stage, key)
        if not (folder / OUTPUT_FILE).is_file():
            return None
        output = io.read(folder / OUTPUT_FILE, Output)
        if output.key != key:
            raise TamperedError(
                f"output of stage {stage} was stored under another key ({output.key[:12]})", where=str(folder), hint=_again(stage)
            )
        for file in output.files:
            verify(folder / file.path, file, stage)
        return Stored(folder, output, cached=True)

    def make(self, stage: str, parts: Mapping[str, Any], work: Callable[[Path], io.Record], *, force: bool = False) -> Stored:
        """Return the stored output of these key parts, making it first where it is not there.

        Args:
            stage: Name of the stage.
            parts: What the key is made from.
            work: Does the stage's work in the given folder (which may hold the remains of an interrupted try) and
                returns its record.
            force: Make it again even when it is there.
        """
        key = key_of(parts)
        with self._locked(stage, key):
            if not force and (found := self.find(stage, key)):
                return found
            partial = self.folder(stage, key).with_name(f"{stage}-{key[:12]}.partial")
            if not force and (finished := self._finished(stage, key, partial)):
                return finished
            self._begin(stage, partial)
            record = work(partial)
            return Stored(*self._commit(stage, key, parts, partial, record), cached=False)

    @contextmanager
    def _locked(self, stage: str, key: str) -> Iterator[None]:
        from filelock import FileLock

        self._writable(stage)
        with FileLock(str(self.root / f".{stage}-{key[:12]}.lock")):
            yield

    def _writable(self, stage: str) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refusal(error, "cannot make the store's folder", where=f"{stage}: {self.root}") from None
        if not os.access(self.root, os.W_OK):
            raise StageError("the store's folder is not writable", where=f"{stage}: {self.root}", hint="choose another --workspace")

    def _begin(self, stage: str, partial: Path) -> None:
        free = shutil.disk_usage(self.root).free
        if free < FREE_BYTES:
            raise StageError(f"only {free >> 20} MiB are free on the disk", where=f"{stage}: {self.root}", hint="sparsegate runs prune")
        partial.mkdir(exist_ok=True)
        (partial / OUTPUT_FILE).unlink(missing_ok=True)
        for cut_off in [path for path in partial.rglob(".*") if path.is_file()]:  # writes that a kill cut off: see io.write_bytes
            cut_off.unlink()

    def _finished(self, stage: str, key: str, partial: Path) -> Stored | None:
        """Name an output that was whole when its run was killed, before it got its final name; None where there is none."""
        if not (partial / OUTPUT_FILE).is_file():
            return None
        try:
            output = io.read(partial / OUTPUT_FILE, Output)
            for file in output.files:
                verify(partial / file.path, file, stage)
        except SparsegateError:
            return None
        return Stored(self._named(stage, key, partial), output, cached=False) if output.key == key else None

    def _commit(self, stage: str, key: str, parts: Mapping[str, Any], partial: Path, record: io.Record) -> tuple[Path, Output]:
        io.write(partial / RECORD_FILE, record)
        files = [
            Artifact.of(path, relative_to=partial) for path in sorted(partial.rglob("*")) if path.is_file() and path.name != OUTPUT_FILE
        ]
        output = Output(
            stage=stage,
            key=key,
            parts=dict(parts),
            files=files,
            digest=stage_digest(files),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        io.write(partial / OUTPUT_FILE, output)
        return self._named(stage, key, partial), output

    def _named(self, stage: str, key: str, partial: Path) -> Path:
        final = self.folder(stage, key)
        if final.exists():
            shutil.rmtree(final)
        partial.rename(final)
        return final


def verify(path: Path, recorded: Artifact, stage: str) -> None:
    """Check that a file still has the bytes that were recorded.

    Raises:
        TamperedError: names the file and the stage that made it.
    """
    if not path.is_file():
        raise TamperedError(f"a file of stage {stage} is missing", where=str(path), hint=_again(stage))
    if io.sha256_file(path) != recorded.sha256:
        raise TamperedError(f"a file of stage {stage} no longer has the bytes that were recorded", where=str(path), hint=_again(stage))


def _again(stage: str) -> str:
    return f"make it again: sparsegate run RECIPE --force {stage}"
