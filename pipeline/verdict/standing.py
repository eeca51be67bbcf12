"""How the layers of an arm stand on a rung, by the record that proves it; and which layers `all` means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pipeline.records.arms import OnnxArms
from pipeline.records.check import CheckedLayer
from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung, Step
from pipeline.records.tactics import Build, TacticLayer
from pipeline.verdict.budget import Rule
from pipeline.verdict.joining import EngineLayers, weighted_layers
from pipeline.verdict.matching import is_reformat
from pipeline.verdict.tactic_rungs import TacticRungs, holders

TACTIC_RUNGS = ("eligible", "timed", "selected")
SPARSE_FILE = "sparse"
"""The ONNX file whose layers the train, freeze and export records prove."""
FILE_OF_ARM = {"sparse": SPARSE_FILE, "twin": SPARSE_FILE, "dense": "dense"}
"""What the build stage makes each arm from."""


class Standing(NamedTuple):
    """How the layers of an arm stand on one rung."""

    by_layer: Mapping[str, Rung]
    names: Mapping[str, tuple[str, ...]]
    """Everything a layer is called: its id, modules, ONNX nodes, engine layer."""


def _standing(items: list[tuple[WeightedLayer, Rung]]) -> Standing:
    names = {layer.id: (layer.id, *layer.modules, *layer.onnx_nodes, *([layer.weight] if layer.weight else [])) for layer, _ in items}
    by_layer: dict[str, Rung] = {}
    for layer, rung in items:  # two operands of one node are one layer: it stands where the worse of them does
        by_layer[layer.id] = rung if by_layer.get(layer.id, Rung.YES) is Rung.YES else by_layer[layer.id]
    return Standing(by_layer, names)


def _masked(evidence: Evidence, arm: str) -> Standing | None:
    if evidence.train is None:
        return None
    return _of_sparse_weights([(d.layer, d.proof) for d in evidence.train.layers if d.masked], evidence, arm)


def _frozen(evidence: Evidence, arm: str) -> Standing | None:
    return _of_sparse_weights([(layer.layer, layer.proof) for layer in evidence.freeze.layers], evidence, arm) if evidence.freeze else None


def _of_sparse_weights(items: list[tuple[WeightedLayer, Rung]], evidence: Evidence, arm: str) -> Standing | None:
    """Training and freezing prove the weights of the sparse file alone: in an arm of another file they prove nothing masked."""
    source = file_of(evidence, arm)
    if source is None:
        return None
    return _standing([(layer, proof if source == SPARSE_FILE else Rung.NO) for layer, proof in items])


def _exported(evidence: Evidence, arm: str) -> Standing | None:
    source = file_of(evidence, arm)
    if evidence.export is None or source is None:
        return None
    if source == SPARSE_FILE:
        return _standing([(layer.layer, layer.proof) for layer in evidence.export.layers])
    checked = operands_of(evidence.export, source)
    return None if checked is None else _standing([(item.layer, _checked(item.layer, checked)) for item in evidence.export.layers])


def _checked(layer: WeightedLayer, checked: list[CheckedLayer]) -> Rung:
    """Rung 3 of a layer from the check of another file than the sparse one, whose nodes have the same names."""
    found = {operand.two_four for operand in checked if operand.node in layer.onnx_nodes}
    return Rung.NO if False in found else Rung.YES if found == {True} else Rung.UNKNOWN


def _tactic(rung: str) -> Callable[[Evidence, str], Standing | None]:
    def read(evidence: Evidence, arm: str) -> Standing | None:
        builds = builds_of(evidence, arm)
        return of_build(builds[0], rung) if builds else None

    return read


RUNGS: dict[str, Callable[[Evidence, str], Standing | None]] = {
    "masked": _masked,
    "frozen": _frozen,
    "exported": _exported,
    **{rung: _tactic(rung) for rung in TACTIC_RUNGS},
}
"""Where each rung's proofs stand in the records."""


def file_of(evidence: Evidence, arm: str) -> str | None:
    """The ONNX file that an arm's engines were built from; by the arm's name before anything is built, None for an unknown arm."""
    base = arm.partition("#")[0]
    if evidence.build is not None:
        return next((engine.onnx_arm for engine in evidence.build.engines if engine.arm == base), None)
    return FILE_OF_ARM.get(base)


def operands_of(export: OnnxArms, source: str) -> list[CheckedLayer] | None:
    """What the check found in one of the ONNX files; None where that file was not exported."""
    return next((item.check.layers for item in export.arms if item.arm == source), None)


def builds_of(evidence: Evidence, arm: str) -> list[Build]:
    """The builds of an arm, first the one that is released."""
    report = evidence.tactics
    found = [build for build in report.builds if (build.arm or "").partition("#")[0] == arm] if report else []
    return sorted(found, key=lambda build: (len(build.arm or ""), build.arm or ""))


def of_build(build: Build, rung: str) -> Standing:
    """The engine's own layers; reformats carry the names of others, and no rung is asked of them."""
    layers = [layer for layer in build.layers if not is_reformat(layer)]
    by_layer = {layer.id: Rung(getattr(layer, rung)) for layer in layers}
    return Standing(by_layer, {layer.id: _called(layer) for layer in layers})


def _called(layer: TacticLayer) -> tuple[str, ...]:
    return (layer.id, layer.name, *layer.parts, *layer.onnx_nodes)


def of_the_model(evidence: Evidence, rule: Rule, meant: set[str]) -> Standing | None:
    """The model's layers on a rung of the engine: each where the worst engine layer that holds it does, unknown where none is known to.

    A layer that is in no engine layer does not hide behind the number of the others.
    """
    builds = builds_of(evidence, rule.arm)
    if not builds:
        return None
    judge, engine, step = TacticRungs(evidence, builds[0]), EngineLayers(builds[0]), Step(str(rule.rung))
    layers = [layer for layer in weighted_layers(evidence) if layer.id in meant or rule.layers]
    names = _standing([(layer, Rung.UNKNOWN) for layer in layers]).names
    held = {layer.id: tuple(name for item in holders(engine, layer) for name in _called(item)) for layer in layers}
    by_layer = {layer.id: judge.of(layer)[step].rung for layer in layers}
    return Standing(by_layer, {of: (*called, *held[of]) for of, called in names.items()})


def in_no_engine_layer(standing: Standing, evidence: Evidence, arm: str) -> list[str]:
    """Layers of the model that no engine layer is known to hold."""
    engine = EngineLayers(builds_of(evidence, arm)[0])
    return sorted(layer.id for layer in weighted_layers(evidence) if layer.id in standing.by_layer and not holders(engine, layer))


def layers_meant(evidence: Evidence) -> set[str]:
    """What `all` means: the layers that were to be masked; without training, every exported one whose weight could be 2:4."""
    if evidence.train is not None:
        return {decision.layer.id for decision in evidence.train.layers if decision.masked}
    if evidence.export is None:
        return set()
    checked = operands_of(evidence.export, SPARSE_FILE)
    return {item.layer.id for item in evidence.export.layers if checked is None or _could_be(item.layer, checked)}


def _could_be(layer: WeightedLayer, checked: list[CheckedLayer]) -> bool:
    """Some constant operand whose reduction axis is a multiple of 4; a layer that the check does not name counts too."""
    found = [operand for operand in checked if operand.node in layer.onnx_nodes]
    return not found or any(operand.two_four or (operand.two_four is False and operand.groups is not None) for operand in found)
