"""Where runs lie: `logs/<recipe>/<run-id>/` in the workspace, and how a person names one."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from glob import escape
from pathlib import Path

from pipeline.commands import in_workspace
from pipeline.errors import InputError


def logs(workspace: Path) -> Path:
    """Folder of all runs."""
    return workspace / "logs"


def store_root(workspace: Path, recipe: str) -> Path:
    """Folder of a recipe's stage outputs."""
    return workspace / "engines" / recipe


def baseline_path(workspace: Path, name: str) -> Path:
    """File of a stored baseline.

    Raises:
        InputError: the name cannot be a file's.
    """
    from pipeline.verdict.baseline import checked_name

    return workspace / "baselines" / f"{checked_name(name)}.json"


def new_run_id() -> str:
    """UTC time and four random hex digits: sorts by time, unique for two runs in one second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def all_runs(workspace: Path, recipe: str | None = None) -> list[Path]:
    """Folders of the runs, oldest first."""
    if recipe == "":
        return []
    return sorted(
        (path.parent for path in logs(workspace).glob(f"{'*' if recipe is None else escape(recipe)}/*/run.json")),
        key=lambda path: path.name,
    )


def find(run: str, workspace: Path) -> Path:
    """The folder that RUN names: a folder, `recipe/run-id`, or `recipe` (its latest run).

    Raises:
        InputError: the name is empty, or nothing has it; says which runs there are.
    """
    if not run.strip():  # such as an unset variable in a script
        raise InputError("a run's name is empty", where="RUN", hint=f"name a folder, recipe/run-id or recipe; {_known(workspace)}")
    for folder in (Path(run), logs(workspace) / run):
        if (folder / "run.json").is_file():
            return folder
    if "/" not in run and (runs := all_runs(workspace, recipe=run)):
        return runs[-1]
    raise InputError(f"no run {run!r} (looked for a folder with run.json, and in {logs(workspace)})", hint=_known(workspace))


def _known(workspace: Path) -> str:
    """Which recipes have runs, or how the first one is made."""
    known = sorted({path.parent.name for path in all_runs(workspace)})
    return f"recipes with runs: {', '.join(known)}" if known else f"sparsegate run RECIPE{in_workspace(workspace)} makes one"
