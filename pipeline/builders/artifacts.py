"""Names of what a build leaves, and the check that a plan is still the one that was built."""

from __future__ import annotations

from pathlib import Path

from pipeline.builders.base import ArmRequest
from pipeline.errors import TamperedError
from pipeline.records.engines import Engine
from pipeline.records.io import sha256_file


def engine_stem(request: ArmRequest) -> str:
    """File stem of an engine's artifacts: `sparse`, `sparse-2` for a rebuilt arm."""
    return request.arm if request.repeat == 1 else f"{request.arm}-{request.repeat}"


PRODUCTS = (".plan", ".layers.json", ".cache")


def clear(folder: Path, stem: str) -> None:
    """Remove what a broken-off build left: a build that is resumed must neither start from its cache nor take its plan for its own."""
    for suffix in PRODUCTS:
        (folder / f"{stem}{suffix}").unlink(missing_ok=True)


def check_plan(engine: Engine, folder: Path) -> Path:
    """Path of the engine's plan, after its bytes were compared with the recorded digest.

    Raises:
        TamperedError: the file is missing or is another one.
    """
    plan = folder / engine.plan.path
    if not plan.is_file():
        raise TamperedError("the plan is missing", where=str(plan), hint="build again: sparsegate run RECIPE --force build")
    found = sha256_file(plan)
    if found != engine.plan.sha256:
        raise TamperedError(
            f"the plan is not the one that was built (sha256 {found[:12]}, recorded {engine.plan.sha256[:12]})",
            where=str(plan),
            hint="build again: sparsegate run RECIPE --force build",
        )
    return plan
