"""Fixtures shared by all tests: one quickstart run serves them all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from filelock import FileLock

os.environ.setdefault("POLYGRAPHY_AUTOINSTALL_DEPS", "0")
hypothesis.settings.register_profile("sparsegate", deadline=None)  # tests carry no timing limits: machines may be busy
hypothesis.settings.load_profile("sparsegate")

ROOT = Path(__file__).resolve().parent.parent
QUICK = ("measure.seconds=2", "measure.layer_passes=1")
"""Settings that shorten the quickstart without leaving anything of it out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker begins with all tests that need the quickstart's run, so that no other one waits for it."""
    needing = [item for item in items if "quickstart_run" in getattr(item, "fixturenames", ())]
    for item in needing:
        item.add_marker(pytest.mark.xdist_group("quickstart"))
    chosen = set(needing)
    items[:] = [*needing, *(item for item in items if item not in chosen)]


@dataclass(frozen=True)
class QuickstartRun:
    """The quickstart as it ran once: its folder, workspace and everything that was recorded."""

    folder: Path
    workspace: Path
    recipe: Path
    overrides: tuple[str, ...]

    @property
    def evidence(self) -> Any:
        from pipeline.records.evidence import read_evidence

        return read_evidence(self.folder)

    def stage_folder(self, stage: str) -> Path:
        """Where the store keeps a stage's output."""
        status = next(status for status in self.evidence.run.stages if status.stage == stage)
        return self.workspace / "engines" / "quickstart" / status.folder

    def copy(self, target: Path) -> Path:
        """A workspace of one's own to break: the store and the runs."""
        shutil.copytree(self.workspace, target)
        return target


@pytest.fixture(scope="session")
def quickstart_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[QuickstartRun]:
    """Run recipes/quickstart.yaml once for all workers of this session."""
    from pipeline.run import all_runs, run

    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    workspace, recipe = shared / "quickstart-workspace", ROOT / "recipes" / "quickstart.yaml"
    with FileLock(str(shared / "quickstart.lock")):
        if not (workspace / "done").exists():
            run(recipe, overrides=QUICK, workspace=workspace)
            (workspace / "done").touch()
    yield QuickstartRun(all_runs(workspace)[-1], workspace, recipe, QUICK)
