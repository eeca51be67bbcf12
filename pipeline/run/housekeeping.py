"""Listing runs, and finding stored outputs that no kept run needs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from pipeline.alive import as_it_stands
from pipeline.commands import again
from pipeline.records.evidence import Evidence
from pipeline.records.io import read
from pipeline.records.run import Run
from pipeline.run.store import OUTPUT_FILE
from pipeline.run.workspace import all_runs


def summaries(workspace: Path, recipe: str | None = None) -> list[str]:
    """One line per run; under one that was killed, the command that goes on with it, unless its recipe was run again since."""
    lines = []
    folders = all_runs(workspace, recipe)
    latest = {folder.parent.name: folder for folder in folders}
    for folder in folders:
        run = as_it_stands(read(folder / "run.json", Run), folder)
        stages = " ".join(f"{stage.stage}:{stage.status}" for stage in run.stages)
        lines.append(f"{run.recipe}/{run.id}  {run.result:<12}  {stages}".rstrip())
        if run.result == "killed" and latest[folder.parent.name] == folder:
            lines.append(f"  go on with it: {again(Evidence(folder=folder, run=run))}")
    return lines


def prunable(workspace: Path, keep: int) -> Iterator[tuple[Path, int]]:
    """Complete outputs below `engines/` that none of the latest `keep` runs of their recipe names, with their bytes."""
    for recipe in sorted(path for path in (workspace / "engines").glob("*") if path.is_dir()):
        runs = all_runs(workspace, recipe.name)
        kept = {
            stage.folder
            for folder in runs[len(runs) - keep if keep < len(runs) else 0 :]
            for stage in read(folder / "run.json", Run).stages
        }
        if keep == 0:
            kept = set()
        for output in sorted(recipe.glob(f"*/{OUTPUT_FILE}")):
            if output.parent.name not in kept and not output.parent.name.endswith(".partial"):
                yield output.parent, sum(path.stat().st_size for path in output.parent.rglob("*") if path.is_file())


def remove(folder: Path) -> None:
    """Remove a stored output under the lock of its stage, so that no run is using it half gone."""
    from filelock import FileLock

    with FileLock(str(folder.parent / f".{folder.name}.lock")):
        shutil.rmtree(folder)
