"""run.json: what ran, on what, from what, and how each stage ended."""

from __future__ import annotations

from typing import Literal

from pipeline.records.io import Part, Record

RECORD_FILE = "record.json"
"""A stage's record among its artifacts."""


class StageStatus(Part, frozen=True, kw_only=True):
    """One stage of one run."""

    stage: str
    status: Literal["ok", "cached", "failed", "skipped"]
    key: str | None = None
    folder: str | None = None
    """Below the workspace's `engines/`."""
    started: str | None = None
    ended: str | None = None
    error: str | None = None
    record: str | None = None
    """Copy of the stage's record, relative to the run's folder."""
    artifacts: dict[str, str] = {}
    """sha256 by path, relative to the stage's folder."""

    @property
    def reason(self) -> str:
        """Why it failed, on one line."""
        return " ".join((self.error or "no reason was recorded").split())


class Provenance(Part, frozen=True, kw_only=True):
    """Facts that another person needs to repeat the run."""

    sparsegate: str
    python: str
    os: str
    cpu: str
    cores: int
    packages: dict[str, str] = {}
    gpus: list[dict[str, str]] = []
    cuda: str | None = None
    tensorrt: str | None = None
    git_commit: str | None = None
    git_dirty: bool | None = None
    seed: int | None = None
    command: list[str] = []


class RunProcess(Part, frozen=True, kw_only=True):
    """The process that makes a run: what tells one that was killed from one that goes on (`pipeline.alive`)."""

    pid: int
    host: str
    """The host's name."""
    boot: str | None = None
    """Linux's id of this start of the kernel, the same in all its containers."""
    locked: bool = False
    """Whether it holds the lock file `.running` in the run's folder, which the kernel gives up when the process ends."""


class Run(Record, frozen=True, kw_only=True, tag="sparsegate.run/1"):
    """One run of a recipe."""

    id: str
    recipe: str
    recipe_path: str
    recipe_text: str
    recipe_digest: str
    sections: dict[str, object] = {}
    """The recipe after defaults and --set, as the stages saw it."""
    overrides: list[str] = []
    """`--set`, in the order given."""
    limits: list[str] = []
    """`--from`, `--until` and `--force` with their stages, as words of a command line."""
    started_in: str | None = None
    """The folder from which a relative `recipe_path` starts."""
    started: str
    ended: str | None = None
    result: Literal["pass", "fail", "inconclusive", "failed", "stopped", "running", "killed"] = "running"
    """`killed` is never written: readers put it in place of `running` where the run's process is gone."""
    process: RunProcess | None = None
    provenance: Provenance
    stages: list[StageStatus] = []
