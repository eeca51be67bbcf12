"""run.json: what ran, on what, from what, and how each stage ended."""

from __future__ import annotations

from typing import Literal

from pipeline.records.io import Part, Record


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


class Run(Record, frozen=True, kw_only=True, tag="sparsegate.run/1"):
    """One run of a recipe."""

    id: str
    recipe: str
    recipe_path: str
    recipe_text: str
    recipe_digest: str
    sections: dict[str, object] = {}
    """The recipe after defaults and --set, as the stages saw it."""
    started: str
    ended: str | None = None
    result: Literal["pass", "fail", "inconclusive", "failed", "stopped", "running"] = "running"
    provenance: Provenance
    stages: list[StageStatus] = []
