"""What a stage gets: its sections of the recipe, the records before it, a folder to work in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pipeline.errors import StageError
from pipeline.progress import Progress, silent
from pipeline.records.artifact import Artifact
from pipeline.records.evidence import RECORD_OF_STAGE
from pipeline.records.io import Record, decode

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.sources.base import Data

AnyRecord = TypeVar("AnyRecord", bound=Record)
Sections = Mapping[str, Any]


@dataclass(frozen=True)
class Upstream:
    """A finished stage as a later one sees it."""

    record: Record
    folder: Path


@dataclass(frozen=True)
class Work:
    """One execution of one stage."""

    sections: Sections
    """The recipe as plain mappings, defaults filled in."""
    base: Path
    """Folder of the recipe: its paths are relative to this one."""
    folder: Path
    """Where the stage works; may hold the remains of an interrupted try."""
    upstream: Mapping[str, Upstream] = field(default_factory=dict)
    progress: Progress = silent

    @property
    def seed(self) -> int:
        """The recipe's seed."""
        return int(self.sections["seed"])

    def section(self, name: str) -> dict[str, Any]:
        """One section of the recipe."""
        return dict(self.sections[name])

    def data(self) -> Data:
        """The recipe's samples, prepared as its model asks: the same in every stage."""
        from pipeline import sources

        return sources.data_source(self.section("data"), self.base, self.section("model"))

    def record(self, stage: str, kind: type[AnyRecord]) -> AnyRecord:
        """The record of an earlier stage."""
        found = self.upstream[stage].record
        if not isinstance(found, kind):
            raise StageError(f"the record of stage {stage} is a {type(found).__name__}, not a {kind.__name__}")
        return found

    def file(self, stage: str, artifact: Artifact) -> Path:
        """An earlier stage's file."""
        return self.upstream[stage].folder / artifact.path

    def state(self, stage: str, artifact: Artifact) -> dict[str, Tensor]:
        """An earlier stage's state dict (or masks)."""
        from pipeline import sources

        return sources.load_state(self.file(stage, artifact))

    def save_state(self, name: str, state: Mapping[str, Tensor]) -> Artifact:
        """Write a state dict (or masks) as `<name>.safetensors`."""
        from pipeline import sources

        return self.artifact(sources.save_state(self.folder / f"{name}.safetensors", state))

    def artifact(self, path: Path) -> Artifact:
        """Record a file that this stage made."""
        return Artifact.of(path, relative_to=self.folder)


class Stage(Protocol):
    """A module of this package: which sections and stages it reads, a light key and a lazy execute."""

    __name__: str
    REVISION: int
    """Bumped by hand when the same inputs would give another output."""
    NEEDS: tuple[str, ...]
    """Stages whose records it reads."""
    key: Callable[[Sections, Path], dict[str, Any]]
    """(sections, recipe folder) -> what decides the output, apart from the stages before: imports nothing heavy."""
    execute: Callable[[Work], Record]


def read_record(stage: str, data: bytes) -> Record:
    """Decode the record of a stage."""
    return decode(data, RECORD_OF_STAGE[stage], where=f"record of stage {stage}")


def pick(section: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The named keys of a section."""
    return {name: section[name] for name in names}
