"""What the shell completes for RUN: recipes with runs, and their runs."""

from __future__ import annotations

from pathlib import Path

import click


def complete_run(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """`recipe` and `recipe/run-id`, the latest first, of the workspace that is given on the line."""
    from pipeline.run.workspace import all_runs

    runs = all_runs(Path(ctx.params.get("workspace") or "."))
    names = [f"{folder.parent.name}/{folder.name}" for folder in reversed(runs)]
    return [name for name in (*dict.fromkeys(folder.parent.name for folder in runs), *names) if name.startswith(incomplete)]
