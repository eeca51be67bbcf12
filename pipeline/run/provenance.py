"""Facts that another person needs to repeat a run."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipeline import __version__, machine
from pipeline.records.run import Provenance


def collect(base: Path, *, seed: int, command: Sequence[str]) -> Provenance:
    """Gather versions, machine, and the git state of the recipe's folder."""
    packages = machine.package_versions()
    commit = _git(base, "rev-parse", "HEAD")
    return Provenance(
        sparsegate=__version__,
        python=platform.python_version(),
        os=platform.platform(),
        cpu=machine.cpu_name(),
        cores=machine.cores(),
        packages=packages,
        gpus=machine.gpus(),
        tensorrt=packages.get("tensorrt"),
        git_commit=commit,
        git_dirty=bool(_git(base, "status", "--porcelain", "--untracked-files=no")) if commit else None,
        seed=seed,
        command=list(command),
    )


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
