"""Questions asked of artifacts alone: each joins what the workshops may not know of each other.

Every function imports its workshop when called, so that `import pipeline` and light commands stay light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.benching import Job
    from pipeline.errors import ExitCode
    from pipeline.graph.require import Required
    from pipeline.latency import Plan
    from pipeline.records.baseline import Baseline
    from pipeline.records.check import CheckReport, Target
    from pipeline.records.difference import DiffReport, StabilityReport
    from pipeline.records.estimate import EstimateReport
    from pipeline.records.evidence import Evidence
    from pipeline.records.measurement import Measurement
    from pipeline.records.prune import PruneReport
    from pipeline.records.story import LayerStory
    from pipeline.records.survey import Survey
    from pipeline.records.tactics import TacticReport
    from pipeline.records.verdict import Verdict
    from pipeline.tactics.require import Unmet


def read_log(*sources: str | Path, onnx: str | Path | None = None, build: int | None = None) -> TacticReport:
    """Read TensorRT logs, layer info, profiles and times: eligible apart from selected, and why.

    Args:
        sources: Files, folders, or `-` for stdin; what each is, is told by its content.
        onnx: Model whose node names the fused layer names are joined to.
        build: The build that a layer-info, profile or times file belongs to where that is not evident.

    Raises:
        InputError: a source cannot be read, or there is no such build.
    """
    from pipeline import tactics
    from pipeline.errors import InputError

    report = tactics.read([str(source) for source in sources], onnx_nodes=_node_names(onnx) if onnx else None, build=build)
    ids = [one.id for one in report.builds]
    if build is not None and build not in ids:
        numbers = f"builds are numbered 0 to {ids[-1]}" if len(ids) > 1 else "leave --build out: the only build is number 0"
        raise InputError(
            f"there is no build {build}", where="--build", hint=numbers if ids else "leave --build out: these sources hold no build"
        )
    return report


def require_selected(report: TacticReport, patterns: Sequence[str]) -> tuple[list[Unmet], ExitCode]:
    """Which layers that the patterns name are not known to be selected, and the exit code that follows."""
    from pipeline.tactics.require import exit_code, unmet

    failures = unmet(report, patterns)
    return failures, exit_code(failures)


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
    from pipeline import judging

    return judging.judged(Path(folder))


def judge(evidence: Evidence, rules: Sequence[Mapping[str, Any]], alpha: float = 0.05, baseline: Baseline | None = None) -> Verdict:
    """Hold budgets against the records of a run: pass, fail or inconclusive, each rule with its numbers.

    Args:
        evidence: What `records.evidence.read_evidence` reads from a run's folder.
        rules: The `rules` of a recipe's gate section, as plain mappings.
        alpha: Error probability of each rule.
        baseline: For rules with `over: baseline`.
    """
    from pipeline import judging

    return judging.judge(evidence, rules, alpha, baseline)


def gate(
    folder: str | Path,
    *,
    rules: Sequence[Mapping[str, Any]] | None = None,
    alpha: float | None = None,
    baseline: str | Path | None = None,
) -> Verdict:
    """Judge a run again, from its records alone; nothing in it is changed.

    Args:
        folder: The run's folder.
        rules: Budgets; those of the run's own recipe when absent.
        alpha: Error probability of each rule; the recipe's own when absent.
        baseline: File of a stored baseline, for rules with `over: baseline`.
    """
    from pipeline import judging
    from pipeline.records.evidence import read_evidence
    from pipeline.verdict.baseline import read as read_baseline

    evidence = read_evidence(Path(folder))
    if rules is None or alpha is None:
        own_rules, own_alpha = judging.budgets_of(evidence)
        rules, alpha = own_rules if rules is None else rules, own_alpha if alpha is None else alpha
    stored = read_baseline(Path(baseline)) if baseline is not None else None
    return judging.judge(evidence, rules, alpha, stored)


def save_baseline(folder: str | Path, verdict: Verdict, path: str | Path, *, arm: str = "sparse", replace: bool = False) -> list[str]:
    """Store a passing run's figures as a baseline, or tighten the one that is there.

    Args:
        folder: The run's folder.
        verdict: Of that run; must pass.
        path: `baselines/NAME.json`.
        arm: Whose figures.
        replace: Start anew instead of tightening.

    Returns:
        What changed, in words.

    Raises:
        InputError: the run does not pass, or cannot be compared with the stored baseline.
    """
    from pipeline import judging
    from pipeline.records.evidence import read_evidence

    return judging.save_baseline(read_evidence(Path(folder)), verdict, Path(path), arm=arm, anew=replace)


def diff(a: str | Path, b: str | Path, *, arm: str = "sparse", builds: Sequence[int] = ()) -> DiffReport:
    """What changed between two logs, layer-info files, tactic reports or runs, layer by layer.

    Args:
        a: A build log, a layer-info file, a tactic report as JSON, or a run's folder.
        b: The same; the kinds may differ.
        arm: The arm that is compared where a source is a run.
        builds: Ids of the builds to take, for sources that hold several.

    Raises:
        InputError: a source cannot be read, or holds several builds and none was chosen.
    """
    from pipeline import comparing

    return comparing.diff(a, b, arm=arm, builds=builds)


def stability(*sources: str | Path, arm: str = "sparse", builds: Sequence[int] = ()) -> StabilityReport:
    """How alike several builds of one network are: per layer in how many of them a sparse tactic was selected.

    Args:
        sources: As for `diff`; a single run stands for all its builds of the arm, a single log for all builds in it.
        arm: The arm whose builds are taken where a source is a run.
        builds: Ids of the builds to take, for sources that hold several.

    Raises:
        InputError: fewer than two builds.
    """
    from pipeline import comparing

    return comparing.stability(sources, arm=arm, builds=builds)


def bench(job: Job, plan: Plan | None = None, *, alpha: float = 0.05, folder: str | Path | None = None) -> Measurement:
    """Interleaved latency of ONNX files or plans, with intervals and an A/A comparison.

    Args:
        job: What to time, on which backend.
        plan: How long and how finely; 10 s per batch size when absent.
        alpha: Error probability of each bound.
        folder: Where the samples are kept; not at all when absent.
    """
    from pipeline import benching
    from pipeline.latency import Plan as AnyPlan

    return benching.bench(job, plan or AnyPlan(), alpha, Path(folder) if folder is not None else None)


def explain(folder: str | Path, layer: str) -> LayerStory:
    """Everything that a run's records say of one layer.

    Args:
        folder: The run's folder.
        layer: The layer's id, a module, its weight, one of its ONNX nodes, or the engine layer that holds it.

    Raises:
        InputError: it is not a run, or no layer (or several) go by that name.
    """
    from pipeline.verdict.story import tell

    return tell(judged(folder), layer)


def survey(command: Sequence[str] | None = None, trtexec: str = "trtexec") -> Survey:
    """What each backend could do on this machine, and on a target that `command` reaches."""
    import msgspec

    from pipeline.builders import survey as surveys

    found = surveys.survey()
    return found if command is None else msgspec.structs.replace(found, target=surveys.target_facts(command, trtexec))


def estimate(
    path: str | Path,
    target: Target | None = None,
    *,
    shapes: Mapping[str, list[int]] | None = None,
    batch: int | None = None,
    gpus: Sequence[str] = (),
    gpu_table: str | Path | None = None,
    accumulate: str | None = None,
    profile: str | Path | None = None,
) -> EstimateReport:
    """At most how much faster could 2:4 make an ONNX model? Bounds by GPU from shapes, or from a layer profile.

    Args:
        path: The ONNX file; its weights may be dense.
        target: TensorRT version and typing that the eligibility rules are judged for.
        shapes: Shapes of inputs, where the file leaves them open or others are meant.
        batch: Size of the first axis of inputs where the file leaves it open.
        gpus: Names from the GPU table; all when empty.
        gpu_table: A JSON file with further GPUs.
        accumulate: `fp16` or `fp32` accumulation of fp16 and fp8 kernels; fp32 when not said.
        profile: trtexec's exportProfile of a dense engine: its times replace the shapes' share.

    Raises:
        InputError: a file cannot be read, a shape is open, or a GPU is not known.
    """
    from pipeline import estimating
    from pipeline.records.check import Target as AnyTarget

    return estimating.estimate(
        Path(path),
        target or AnyTarget(),
        shapes=shapes or {},
        batch=batch,
        gpus=gpus,
        gpu_table=Path(gpu_table) if gpu_table else None,
        accumulate=accumulate,
        profile=Path(profile) if profile else None,
    )
