"""How a run and its files are called in the commands that a report proposes."""

from __future__ import annotations

from pipeline.records.evidence import Evidence
from pipeline.verdict.claims import ARM


def names(evidence: Evidence) -> dict[str, str]:
    """`run`, `recipe` and `onnx` (the sparse arm's file) as a user types them; capital placeholders for what is not known."""
    run = evidence.run
    known = {"run": f"{run.recipe}/{run.id}", "recipe": run.recipe_path} if run else {"run": "RUN", "recipe": "RECIPE"}
    return known | {"onnx": _onnx(evidence)}


def _onnx(evidence: Evidence) -> str:
    arm = next((arm for arm in (evidence.export.arms if evidence.export else ()) if arm.arm == ARM), None)
    if arm is None or evidence.run is None:
        return "MODEL.onnx"
    folder = next((stage.folder for stage in evidence.run.stages if stage.stage == "export" and stage.folder), None)
    return f"engines/{evidence.run.recipe}/{folder}/{arm.model.path}" if folder else "MODEL.onnx"


def why_missing(evidence: Evidence, stage: str) -> str:
    """Why a stage left no record: it failed, or it has not run."""
    status = next((item for item in (evidence.run.stages if evidence.run else ()) if item.stage == stage and item.status == "failed"), None)
    return f"the {stage} stage failed: {status.error or 'no reason was recorded'}" if status else f"the {stage} stage has not run"
