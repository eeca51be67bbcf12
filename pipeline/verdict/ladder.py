"""The evidence ladder of a run: what is proven of every layer, of the engine at every shape, of the service.

Each rung is judged alone, from the record of the stage that can prove it; no record reads `unknown`. Nothing here fills a rung
because another one holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.records.checkpoint import LayerDecision
from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung, Step
from pipeline.records.verdict import Rungs
from pipeline.verdict.claims import ARM, Claim, placed
from pipeline.verdict.engine_rungs import engine_rungs, service_rungs
from pipeline.verdict.joining import build_of, weighted_layers
from pipeline.verdict.missing import why_missing
from pipeline.verdict.tactic_rungs import TacticRungs
from pipeline.verdict.time_rungs import TimeRungs


def build(evidence: Evidence) -> list[Rungs]:
    """The ladder: layers with rungs 1-7, then the engine at each shape with rung 8, then the service with rung 9."""
    judge = _LayerJudge(evidence)
    layers = [judge.rungs(layer) for layer in weighted_layers(evidence)]
    return [*layers, *engine_rungs(evidence), *service_rungs()]


class _LayerJudge:
    """Judges rungs 1-7 of one layer after another, with the records indexed once."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._decisions = {item.layer.id: item for item in (evidence.train.layers if evidence.train else ())}
        self._frozen = {item.layer.id: item for item in (evidence.freeze.layers if evidence.freeze else ())}
        self._exported = {item.layer.id: item for item in (evidence.export.layers if evidence.export else ())}
        self._tactics = TacticRungs(evidence)
        self._times = TimeRungs(evidence)
        self._untrained = why_untrained(evidence)

    def rungs(self, layer: WeightedLayer) -> Rungs:
        decision = self._decisions.get(layer.id)
        claims: dict[Step, Claim] = {
            Step.MASKED: self._masked(layer),
            Step.FROZEN: self._frozen_claim(layer),
            Step.EXPORTED: self._exported_claim(layer),
            **self._tactics.of(layer),
            Step.FASTER_LAYER: self._times.of(layer),
        }
        if decision is not None and not decision.masked:
            return placed(layer.id, _kept_dense(claims, decision), _decision_text(decision))
        return placed(layer.id, claims, _decision_text(decision))

    def _unknown(self, stage: str) -> Claim:
        """No evidence, and why there is none."""
        gone = getattr(self._evidence, stage) is None
        return Claim(Rung.UNKNOWN, why_missing(self._evidence, stage) if gone else f"the {stage} record does not name this layer")

    def _masked(self, layer: WeightedLayer) -> Claim:
        decision = self._decisions.get(layer.id)
        own = Claim(decision.proof, decision.text) if decision else self._unknown("train")
        return self._untrained or own

    def _frozen_claim(self, layer: WeightedLayer) -> Claim:
        frozen = self._frozen.get(layer.id)
        own = Claim(frozen.proof, frozen.text) if frozen else self._unknown("freeze")
        return self._untrained or own

    def _exported_claim(self, layer: WeightedLayer) -> Claim:
        exported = self._exported.get(layer.id)
        return Claim(exported.proof, exported.text) if exported else self._unknown("export")


def why_untrained(evidence: Evidence) -> Claim | None:
    """Why rungs 1 and 2 do not apply to a run: an ONNX model, or weights that the build forced; None where they apply."""
    return next((claim for reason in _UNTRAINED if (claim := reason(evidence)) is not None), None)


def _onnx_model(evidence: Evidence) -> Claim | None:
    """The recipe says so; in the gate's own view, which has no run.json, an export without training and freezing does."""
    if evidence.run is None:
        given = evidence.export is not None and evidence.train is None and evidence.freeze is None
    else:
        model = evidence.run.sections.get("model")
        given = isinstance(model, Mapping) and bool(model.get("onnx"))
    return Claim(Rung.NOT_APPLICABLE, "the model came as ONNX: nothing was trained here") if given else None


def _forced_build(evidence: Evidence) -> Claim | None:
    build = build_of(evidence.tactics, ARM) if evidence.tactics else None
    if build is not None and build.sparsity == "forced":
        return Claim(Rung.NOT_APPLICABLE, "the build forced sparsity: its weights are not the model's")
    return None


_UNTRAINED: tuple[Callable[[Evidence], Claim | None], ...] = (_onnx_model, _forced_build)


def _kept_dense(claims: Mapping[Step, Claim], decision: LayerDecision) -> dict[Step, Claim]:
    """A layer that was meant to stay dense misses no rung; what was proven of its pattern or kernel all the same stays."""
    kept = Claim(Rung.NOT_APPLICABLE, f"stays dense by decision ({decision.rule})")
    stays = {step for step, claim in claims.items() if step is not Step.FASTER_LAYER and claim.rung in (Rung.YES, Rung.DISPUTED)}
    return {step: claim if step in stays else kept for step, claim in claims.items()}


def _decision_text(decision: LayerDecision | None) -> str:
    if decision is None:
        return ""
    return f"{'masked' if decision.masked else 'dense'} ({decision.rule}): {decision.text}"
