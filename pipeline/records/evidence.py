"""All records of one run together: what the ladder, the gate and the reports are computed from."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pipeline.errors import InputError, TamperedError
from pipeline.records.arms import OnnxArms
from pipeline.records.artifact import Artifact
from pipeline.records.checkpoint import Checkpoint
from pipeline.records.engines import Engines
from pipeline.records.frozen import FrozenModel
from pipeline.records.io import Record, read, sha256_file
from pipeline.records.measurement import Measurement
from pipeline.records.run import RECORD_FILE, Run, StageStatus
from pipeline.records.tactics import TacticReport
from pipeline.records.verdict import Verdict

RECORD_OF_STAGE: dict[str, type[Record]] = {
    "train": Checkpoint,
    "freeze": FrozenModel,
    "export": OnnxArms,
    "build": Engines,
    "tactics": TacticReport,
    "measure": Measurement,
    "gate": Verdict,
}


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a run, by stage; None where the stage did not run (or is not applicable)."""

    folder: Path | None = None
    """The run's folder: `run.json`, `records/<stage>.json`, and copies of artifacts under `<stage>/<artifact path>`."""
    folders: dict[str, Path] = {}
    """Where a stage's artifacts lie, when not below `folder`: while a run is going on, the store."""
    run: Run | None = None
    train: Checkpoint | None = None
    freeze: FrozenModel | None = None
    export: OnnxArms | None = None
    build: Engines | None = None
    tactics: TacticReport | None = None
    measure: Measurement | None = None
    gate: Verdict | None = None

    def file(self, stage: str, artifact: Artifact) -> Path:
        """Where a stage's artifact lies: in the store, or the run's copy of it."""
        if stage in self.folders:
            return self.folders[stage] / artifact.path
        if self.folder is None:
            raise InputError(f"the {stage} record has no folder to find {artifact.path} in", hint="give the run's folder")
        return self.folder / stage / artifact.path


def read_evidence(folder: Path) -> Evidence:
    """Read run.json and every record that the run's folder holds.

    Raises:
        InputError: no such run, or a record that cannot be read or is gone.
        TamperedError: a record is not the one that its stage wrote.
    """
    if not (folder / "run.json").is_file():
        raise InputError("not a run: it holds no run.json", where=str(folder), hint="sparsegate runs list")
    run = read(folder / "run.json", Run)
    for stage in run.stages:
        _verify(folder, stage)
    records = {
        stage: read(path, kind) for stage, kind in RECORD_OF_STAGE.items() if (path := folder / "records" / f"{stage}.json").is_file()
    }
    return msgspec.structs.replace(Evidence(folder=folder, run=run), **records)


def _verify(folder: Path, stage: StageStatus) -> None:
    """A verdict is worth what its records are: each must have the bytes that run.json tells."""
    if stage.record is None:
        return
    path = folder / "records" / f"{stage.stage}.json"
    hint = "take the run's folder from where it was made, or make the run again"
    if not path.is_file():
        raise InputError(f"the record of stage {stage.stage} is gone that run.json names", where=str(path), hint=hint)
    digest = stage.artifacts.get(RECORD_FILE)
    if digest is not None and sha256_file(path) != digest:
        raise TamperedError(f"the record of stage {stage.stage} does not match its digest in run.json", where=str(path), hint=hint)
