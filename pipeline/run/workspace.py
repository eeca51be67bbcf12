"""Where runs lie: `logs/<recipe>/<run-id>/` in the workspace, and how a person names one."""

from __future__ import annotations

import shlex
import time
from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from glob import escape
from pathlib import Path

from pipeline.commands import in_workspace
from pipeline.errors import InputError
from pipeline.paths import near

TICKS = 1 << 16
"""Parts of a second that ids tell apart."""
_SECOND = "%Y%m%dT%H%M%SZ"


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


def next_id(workspace: Path) -> str:
    """The id of a run that begins now: UTC time to the second, and 65536ths of that second as four hex digits.

    It sorts after the id of every run that is there, also where the clock was set back since or where another machine's is ahead.
    """
    latest = max((_tick(path.name) for path in logs(workspace).glob("*/*")), default=0)
    seconds, part = divmod(max(time.time_ns() * TICKS // 10**9, latest + 1), TICKS)
    return f"{datetime.fromtimestamp(seconds, UTC):{_SECOND}}-{part:04x}"


def _tick(run_id: str) -> int:
    """An id as a number in the order of the ids; 0 where it is none."""
    second, _, part = run_id.rpartition("-")
    try:
        return int(datetime.strptime(second, _SECOND).replace(tzinfo=UTC).timestamp()) * TICKS + int(part, 16) % TICKS
    except ValueError:
        return 0


def new_run(workspace: Path, recipe: str) -> Path:
    """Make the folder of a run that begins now; its name is the run's id, and no other run has it.

    Raises:
        OSError: the folder cannot be made.
    """
    runs = logs(workspace) / recipe
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        folder = runs / next_id(workspace)
        with suppress(FileExistsError):  # another run began at the same time
            folder.mkdir()
            return folder


def all_runs(workspace: Path, recipe: str | None = None) -> list[Path]:
    """Folders of the runs, oldest first: in the order of their ids."""
    if recipe == "":
        return []
    return sorted(
        (path.parent for path in logs(workspace).glob(f"{'*' if recipe is None else escape(recipe)}/*/run.json")),
        key=lambda path: path.name,
    )


def find(run: str, workspace: Path, or_file: bool = False) -> Path:
    """The folder that RUN names: a folder, `recipe/run-id`, or `recipe` (its latest run).

    Args:
        run: As it was given.
        workspace: Holds `logs/`.
        or_file: Whether it might as well have been the name of a file: for the error.

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
    what = f"no {'file or ' * or_file}run {run!r} (looked for a folder with run.json, and in {logs(workspace)})"
    raise InputError(what, hint=_near(run, workspace, or_file))


def _near(run: str, workspace: Path, or_file: bool) -> str:
    """The run or the path that was meant, else what there is."""
    names = [name for folder in all_runs(workspace) for name in (folder.parent.name, f"{folder.parent.name}/{folder.name}")]
    record = near(Path(run) / "run.json")
    alike = [record and record.parent, *get_close_matches(run, names, n=1), near(Path(run)) if or_file else None]
    meant = next((str(name) for name in alike if name is not None), None)
    return _known(workspace) if meant is None else f"did you mean {shlex.quote(meant)}? ({_known(workspace)})"


def _known(workspace: Path) -> str:
    """Which recipes have runs, or how the first one is made."""
    known = sorted({path.parent.name for path in all_runs(workspace)})
    return f"recipes with runs: {', '.join(known)}" if known else f"sparsegate run RECIPE{in_workspace(workspace)} makes one"
