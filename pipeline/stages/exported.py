"""What both kinds of export record of an ONNX file: nothing of this machine's folders, so that the same model gives the same record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pipeline.errors import InputError
from pipeline.records.check import CheckReport, Target

if TYPE_CHECKING:
    from pipeline.records.estimate import EstimateReport


def checked(path: Path) -> CheckReport:
    """Rung 3 and the eligibility rules, per layer, for no TensorRT version in particular."""
    from pipeline import graph

    report = graph.check(path, Target())
    return replace(report, model=replace(report.model, path=path.name))


def estimate(sparse: Path, batch: int) -> EstimateReport | None:
    """Upper bounds of the gain by GPU, from shapes; None where the graph leaves shapes open."""
    from pipeline import api

    try:
        found = api.estimate(sparse, batch=batch)
    except InputError:
        return None
    return replace(found, model=sparse.name, next="")
