"""Questions asked of artifacts alone: each joins what the workshops may not know of each other.

Every function imports its workshop when called, so that `import pipeline` and light commands stay light.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.graph.require import Required
    from pipeline.records.check import CheckReport, Target
    from pipeline.records.evidence import Evidence
    from pipeline.records.prune import PruneReport
    from pipeline.records.tactics import TacticReport


def read_log(*sources: str | Path, onnx: str | Path | None = None, build: int | None = None) -> TacticReport:
    """Read TensorRT logs, layer info, profiles and times: eligible apart from selected, and why.

    Args:
        sources: Files, folders, or `-` for stdin; what each is, is told by its content.
        onnx: Model whose node names the fused layer names are joined to.
        build: The build that a layer-info, profile or times file belongs to where that is not evident.
    """
    from pipeline import tactics

    return tactics.read([str(source) for source in sources], onnx_nodes=_node_names(onnx) if onnx else None, build=build)


def _node_names(model: str | Path) -> Sequence[str]:
    from pipeline import graph

    return graph.node_names(Path(model))


def check_onnx(path: str | Path, target: Target | None = None, *, parse: bool = False) -> CheckReport:
    """Say for every weight of an ONNX file whether it is 2:4 where its operator reads it, and what keeps it from being eligible.

    Args:
        path: The model.
        target: What it is to run on.
        parse: Also let the ONNX parser of an installed tensorrt or tensorrt-rtx read it.
    """
    from msgspec.structs import replace

    from pipeline import graph
    from pipeline.records.check import Target as AnyTarget

    wanted = target or AnyTarget()
    report = graph.check(Path(path), wanted)
    return replace(report, parse=graph.preflight(Path(path), wanted.typing)) if parse else report


def prune_onnx(path: str | Path, output: str | Path, patterns: Sequence[str] = ()) -> PruneReport:
    """Write a copy of an ONNX model whose weights are 2:4 by magnitude along the axes that their operators sum over.

    Args:
        path: The model.
        output: The copy; external data goes into its folder.
        patterns: Globs over node names; empty: all layers.
    """
    from pipeline import graph

    return graph.prune(Path(path), Path(output), patterns)


def require_layers(report: CheckReport, patterns: Sequence[str]) -> Required:
    """Judge the layers of a check that `--require` names; without patterns nothing is required."""
    from pipeline.graph.require import require

    return require(report, patterns)


def judged(folder: str | Path) -> Evidence:
    """The records of a run, with the ladder and the findings where its gate has not left them.

    A run that ended before its gate gets an inconclusive verdict without rules, in memory alone.

    Args:
        folder: The run's folder.

    Raises:
        InputError: it is not a run, or a record cannot be read.
    """
    from msgspec.structs import replace

    from pipeline.records.evidence import read_evidence
    from pipeline.records.verdict import RuleResult, Verdict
    from pipeline.verdict import diagnosis, ladder

    evidence = read_evidence(Path(folder))
    verdict = evidence.gate or Verdict(outcome=RuleResult.INCONCLUSIVE, rules=[], notes=["the gate has not judged this run"])
    return replace(
        evidence,
        gate=replace(
            verdict,
            ladder=verdict.ladder or ladder.build(evidence),
            findings=verdict.findings or diagnosis.diagnose(evidence),
        ),
    )
