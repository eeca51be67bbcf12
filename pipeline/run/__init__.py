"""The chain of stages, its store, and the folders of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.run.workspace import all_runs, find

if TYPE_CHECKING:
    from pipeline.progress import Progress
    from pipeline.records.evidence import Evidence

__all__ = ["all_runs", "find", "run"]


def run(
    recipe: str | Path,
    *,
    overrides: Sequence[str] = (),
    workspace: str | Path = ".",
    first: str | None = None,
    last: str | None = None,
    force: Sequence[str] = (),
    progress: Progress | None = None,
) -> Evidence:
    """Run a recipe and return everything that was recorded, the verdict in `.gate`.

    Args:
        recipe: The recipe's file.
        overrides: `a.b=c` settings over the recipe's.
        workspace: Folder that holds `engines/` and `logs/`.
        first: Take the stages before this one from the store; they must be there.
        last: Stop after this stage.
        force: Stages to execute even when their output is stored.
        progress: Receives progress.

    Raises:
        InputError: the recipe is wrong.
        StageError: a stage failed; earlier stages are kept.
    """
    from pipeline.progress import silent
    from pipeline.recipe import load_recipe
    from pipeline.records.evidence import read_evidence
    from pipeline.run.chain import Plan, execute

    plan = Plan(
        load_recipe(recipe, overrides), Path(workspace), first=first, last=last, force=frozenset(force), progress=progress or silent
    )
    return read_evidence(execute(plan))
