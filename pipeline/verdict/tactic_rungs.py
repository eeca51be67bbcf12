"""Rungs 4-6 of a weighted layer: what the builder's report says of the engine layers that hold it."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung, Step
from pipeline.records.tactics import Build, Pass, TacticLayer, TacticReport
from pipeline.verdict.claims import ARM, Claim, together
from pipeline.verdict.joining import EngineLayers, build_of, weighted_layers
from pipeline.verdict.matching import is_reformat
from pipeline.verdict.missing import why_missing

STEPS = (Step.ELIGIBLE, Step.TIMED, Step.SELECTED)
REGION = "{ForeignNode["
"""In the name of a region that is compiled as a whole."""


class TacticRungs:
    """Rungs 4-6 of every layer of the model, from one build: that of the sparse arm where none is given."""

    def __init__(self, evidence: Evidence, build: Build | None = None) -> None:
        report = evidence.tactics
        self._report = report
        self._everywhere = _everywhere(evidence) if build is None else None
        build = build or (build_of(report, ARM) if report else None)
        self._engine = EngineLayers(build) if build else None
        self._lists_complete = self._engine is not None and _can_prove_absence(self._engine, evidence)

    def of(self, layer: WeightedLayer) -> dict[Step, Claim]:
        """Eligible, timed and selected of one weighted layer, each with its evidence or reason."""
        if self._everywhere is not None or self._engine is None or self._report is None:
            claim = self._everywhere or Claim(Rung.UNKNOWN, "no tactic record")
            return dict.fromkeys(STEPS, claim)
        found = holders(self._engine, layer)
        if not found:
            return self._absent(layer, self._engine.build)
        return {step: _claim(step, found, self._report) for step in STEPS}

    def _absent(self, layer: WeightedLayer, build: Build) -> dict[Step, Claim]:
        """No engine layer is known to hold the layer: only a complete list of eligible layers can say no."""
        if not layer.onnx_nodes:
            return dict.fromkeys(STEPS, Claim(Rung.UNKNOWN, "its ONNX nodes are not known, so no engine layer can be joined to it"))
        unseen = Claim(Rung.UNKNOWN, f"no engine layer is known to hold {', '.join(layer.onnx_nodes)}")
        claims = dict.fromkeys(STEPS, unseen)
        if self._lists_complete:
            claims[Step.ELIGIBLE] = Claim(Rung.NO, f"the complete list of {len(build.eligible)} eligible layers does not name it")
        return claims


def holders(engine: EngineLayers, layer: WeightedLayer) -> list[TacticLayer]:
    """Engine layers that compute a weighted layer; a reformat beside one carries its name and computes nothing."""
    return [item for item in engine.of(layer) if not is_reformat(item)]


def _claim(step: Step, found: Sequence[TacticLayer], report: TacticReport) -> Claim:
    """How one rung stands over all engine layers: the lines that say so; where it is not proven, the reasons too."""
    rung = together([_of_one_node(step, item) for item in found])
    reasons = [] if rung is Rung.YES else [f"{reason.code}: {reason.text}" for item in found for reason in item.reasons]
    reasons += [
        f"of {item.name} as a whole, which does not tell whose kernel" for item in found if _of_one_node(step, item) is not _of(step, item)
    ]
    lines = [line for item in found for line in _evidence(step, item, report)]
    return Claim(rung, "; ".join(dict.fromkeys((*lines, *reasons))))


def _of(step: Step, item: TacticLayer) -> Rung:
    return Rung(getattr(item, step.value))


def _of_one_node(step: Step, item: TacticLayer) -> Rung:
    """That some kernel of a region is sparse does not say that the one of a node within it is."""
    rung = _of(step, item)
    return Rung.UNKNOWN if rung is Rung.YES and REGION in item.name else rung


def _everywhere(evidence: Evidence) -> Claim | None:
    """What holds for all layers alike: no report, no sparse kernels in this backend, or no build of the sparse arm."""
    report = evidence.tactics
    if report is None:
        return Claim(Rung.UNKNOWN, why_missing(evidence, "tactics"))
    if not report.applicable:
        return Claim(Rung.NOT_APPLICABLE, report.why_not or "the backend has no sparse kernels")
    if build_of(report, ARM) is None:
        return Claim(Rung.UNKNOWN, "the tactic record holds no build of the sparse arm")
    return None


def _evidence(step: Step, layer: TacticLayer, report: TacticReport) -> list[str]:
    texts = []
    for item in layer.evidence:
        if item.rung == step.value:
            source = report.sources[item.source].path if item.source < len(report.sources) else f"source {item.source}"
            texts.append(f"{source}{f':{item.line}' if item.line is not None else ''} {item.says}")
    return texts


def _can_prove_absence(engine: EngineLayers, evidence: Evidence) -> bool:
    """Whether names join at all, and the lists are complete."""
    return lists_are_complete(engine.build) and any(engine.of(layer) for layer in weighted_layers(evidence))


def lists_are_complete(build: Build) -> bool:
    """Whether a build's eligible lists can prove a layer's absence: they are there and whole, and no region hides nodes."""
    standing = [item for item in build.passes if item.superseded_by is None]
    hidden = any(layer.region in ("myelin", "plugin") or "{ForeignNode[" in layer.name for layer in build.layers)
    return bool(standing) and not build.truncated and not hidden and all(_count_agrees(item, build) for item in standing)


def _count_agrees(item: Pass, build: Build) -> bool:
    """Found's count equals its names or their parts; the old wording has no count and lists all."""
    if item.eligible_declared is None:
        return True
    parts = {layer.name: len(layer.parts) or 1 for layer in build.layers}
    return item.eligible_declared in (len(item.eligible), sum(parts.get(name, name.count(" || ") + 1) for name in item.eligible))
