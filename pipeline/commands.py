"""The commands that reports and errors propose, so that they work as they stand: with the workspace and the overrides that were given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from pipeline.records.evidence import Evidence
from pipeline.records.run import Run

SPARSE = "sparse"
EXAMPLE_TARGET = "--sm 8.6 --tensorrt 10.13"


def in_workspace(workspace: Path) -> str:
    """` --workspace FOLDER`; nothing for the current folder.

    >>> in_workspace(Path("other place")), in_workspace(Path())
    (" --workspace 'other place'", '')
    """
    return "" if workspace.resolve() == Path.cwd() else f" --workspace {shlex.quote(str(workspace))}"


def recipe_words(path: str | Path, overrides: Sequence[str] = (), workspace: Path | None = None) -> str:
    """What stands behind `sparsegate run`: the recipe's file, the overrides, the workspace.

    >>> recipe_words("my recipe.yaml", ["gate.alpha=0.1"])
    "'my recipe.yaml' --set gate.alpha=0.1"
    """
    words = [str(path), *(word for text in overrides for word in ("--set", text))]
    return shlex.join(words) + ("" if workspace is None else in_workspace(workspace))


def names(evidence: Evidence) -> dict[str, str]:
    """What a proposed command calls a run and its files, by the word that stands for it in the tables of texts.

    `run` and `recipe` hold all that a command needs to find them again; `folder`, `recipe_file` and `onnx` (the sparse arm's file)
    are paths; `target` is the device and version that the engine was built for. Capital placeholders stand for what is not known.
    """
    run, workspace = evidence.run, workspace_of(evidence)
    found = {"run": "RUN", "recipe": "RECIPE", "recipe_file": "RECIPE", "folder": "RUN", "onnx": "MODEL.onnx"}
    if run is not None:
        file = _recipe_file(run)
        found |= {"recipe": recipe_words(file, run.overrides, workspace), "recipe_file": shlex.quote(file)}
        found |= {"run": f"{run.recipe}/{run.id}", "folder": f"logs/{run.recipe}/{run.id}", "onnx": _onnx(evidence, workspace)}
    if run is not None and evidence.folder is not None:
        folder = shlex.quote(str(evidence.folder))
        found |= {"folder": folder, "run": f"{found['run']}{in_workspace(workspace)}" if workspace is not None else folder}
    return found | {"target": _target(evidence)}


def workspace_of(evidence: Evidence) -> Path | None:
    """The workspace that holds a run; None where the run's folder lies elsewhere, as a copy does."""
    folder, run = evidence.folder, evidence.run
    if folder is None or run is None or folder.resolve().parts[-3:] != ("logs", run.recipe, run.id):
        return None
    return folder.parents[2] if folder.parts[-3:] == ("logs", run.recipe, run.id) else folder.resolve().parents[2]


def again(evidence: Evidence) -> str:
    """The command that goes on with a run that did not end."""
    limits = f" {shlex.join(evidence.run.limits)}" if evidence.run and evidence.run.limits else ""
    return f"sparsegate run {names(evidence)['recipe']}{limits}"


def _recipe_file(run: Run) -> str:
    """The recipe's path from here; from where the run was started, if it is there alone."""
    there = Path(run.started_in or ".") / run.recipe_path
    return str(there) if not Path(run.recipe_path).is_file() and there.is_file() else run.recipe_path


def _onnx(evidence: Evidence, workspace: Path | None) -> str:
    arm = next((arm for arm in (evidence.export.arms if evidence.export else ()) if arm.arm == SPARSE), None)
    stages = evidence.run.stages if evidence.run else ()
    folder = next((stage.folder for stage in stages if stage.stage == "export" and stage.folder), None)
    if arm is None or folder is None or evidence.run is None:
        return "MODEL.onnx"
    return shlex.quote(str((workspace or Path()) / "engines" / evidence.run.recipe / folder / arm.model.path))


def _target(evidence: Evidence) -> str:
    builds = evidence.tactics.builds if evidence.tactics else ()
    build = next((build for build in builds if (build.arm or SPARSE).partition("#")[0] == SPARSE), None)
    sm, version = (build.machine.get("compute_capability"), build.tensorrt) if build else (None, None)
    return shlex.join(["--sm", sm, "--tensorrt", version]) if sm and version else EXAMPLE_TARGET


_RECIPE = re.compile(r"\bsparsegate run RECIPE\b")
_RUN = re.compile(r"\bsparsegate (gate|report|explain|diff) RUN\b")
_RUNS = re.compile(r"\bsparsegate runs (list|prune)\b(?! --workspace)")


def filled(text: str, *, recipe: str | None = None, run: str | None = None, workspace: Path | None = None) -> str:
    """A text whose commands name the recipe, the run and the workspace in place of RECIPE and RUN, where these are known.

    >>> filled("make it again: sparsegate run RECIPE --force build", recipe="r.yaml --set a=1")
    'make it again: sparsegate run r.yaml --set a=1 --force build'
    """
    text = text if recipe is None else _RECIPE.sub(lambda _: f"sparsegate run {recipe}", text)
    text = text if run is None else _RUN.sub(lambda match: f"sparsegate {match[1]} {run}", text)
    return text if workspace is None else _RUNS.sub(lambda match: f"sparsegate runs {match[1]}{in_workspace(workspace)}", text)
