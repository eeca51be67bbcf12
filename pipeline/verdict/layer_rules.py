"""Budgets over layers: how many stand on a rung, named ones among them, none disputed; and selection over several builds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from pipeline.records.arms import OnnxArms
from pipeline.records.check import CheckedLayer
from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung, Step
from pipeline.records.tactics import Build, TacticLayer
from pipeline.records.verdict import JudgedRule, RuleResult
from pipeline.verdict.budget import Rule
from pipeline.verdict.facts import Facts
from pipeline.verdict.joining import EngineLayers, weighted_layers
from pipeline.verdict.tactic_rungs import TacticRungs

TACTIC_RUNGS = ("eligible", "timed", "selected")
SPARSE_FILE = "sparse"
"""The ONNX file whose layers the train, freeze and export records prove."""
SEE_NAMES = "see the names: sparsegate report RUN --format md"
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
        return _of_build(builds[0], rung) if builds else None

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


def _of_build(build: Build, rung: str) -> Standing:
    by_layer = {layer.id: Rung(getattr(layer, rung)) for layer in build.layers}
    return Standing(by_layer, {layer.id: _called(layer) for layer in build.layers})


def _called(layer: TacticLayer) -> tuple[str, ...]:
    return (layer.id, layer.name, *layer.parts, *layer.onnx_nodes)


def _of_the_model(evidence: Evidence, rule: Rule, meant: set[str]) -> Standing | None:
    """The model's layers on a rung of the engine: each where the worst engine layer that holds it does, unknown where none is known to.

    A layer that is in no engine layer does not hide behind the number of the others.
    """
    builds = builds_of(evidence, rule.arm)
    if not builds:
        return None
    judge, engine, step = TacticRungs(evidence, builds[0]), EngineLayers(builds[0]), Step(str(rule.rung))
    layers = [layer for layer in weighted_layers(evidence) if layer.id in meant or rule.layers]
    names = _standing([(layer, Rung.UNKNOWN) for layer in layers]).names
    held = {layer.id: tuple(name for item in engine.of(layer) for name in _called(item)) for layer in layers}
    by_layer = {layer.id: judge.of(layer)[step].rung for layer in layers}
    return Standing(by_layer, {of: (*called, *held[of]) for of, called in names.items()})


def _in_no_engine_layer(standing: Standing, evidence: Evidence, arm: str) -> list[str]:
    """Layers of the model that no engine layer is known to hold."""
    engine = EngineLayers(builds_of(evidence, arm)[0])
    return sorted(layer.id for layer in weighted_layers(evidence) if layer.id in standing.by_layer and not engine.of(layer))


def rungs(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """At least so many layers on the rung, all named ones, none disputed."""
    assert rule.rung is not None
    row = _row(rule)
    not_here = _not_applicable(rule.rung, facts.evidence)
    if not_here:
        return [row(RuleResult.INCONCLUSIVE, not_here, "build with TensorRT")]
    meant = layers_meant(facts.evidence) if rule.at_least == "all" else set()
    joined = rule.at_least == "all" and rule.rung in TACTIC_RUNGS
    standing = _of_the_model(facts.evidence, rule, meant) if joined else RUNGS[rule.rung](facts.evidence, rule.arm)
    if standing is None:
        return [row(RuleResult.INCONCLUSIVE, f"no record says which layers of {rule.arm} are {rule.rung}", "run the stage that proves it")]
    proven = {layer for layer, rung in standing.by_layer.items() if rung is Rung.YES}
    open_ = {layer: rung for layer, rung in standing.by_layer.items() if rung in (Rung.UNKNOWN, Rung.DISPUTED)}
    wanted = int(rule.at_least or 0) if rule.at_least != "all" else len(meant)
    if rule.at_least == "all" and not wanted:
        return [row(RuleResult.INCONCLUSIVE, "no record names a layer that is to be 2:4", "give a number instead of `all`")]
    value = len(proven & meant) if joined else len(proven)
    named, missing = _named(rule.layers, standing)
    if missing:
        return [row(RuleResult.FAIL, f"no layer is called {', '.join(missing)}", SEE_NAMES, value, wanted)]
    disputed = sorted(layer for layer, rung in open_.items() if rung is Rung.DISPUTED and (not named or layer in named))
    if disputed:
        return [row(RuleResult.INCONCLUSIVE, f"sources disagree on {_list(disputed)}", "read the layer info of the engine", value, wanted)]
    if rule.rung == "selected" and _names_only(facts.evidence, rule.arm):
        why = "the layer info holds names only, so no kernel's name proves a selection"
        return [row(RuleResult.INCONCLUSIVE, why, "export layer info with profilingVerbosity=detailed", value, wanted)]
    absent = sorted((named | meant) - proven)
    if any(layer not in open_ for layer in absent) or value + len(open_) < wanted:
        why = f"{_list(absent)} not {rule.rung}" if absent else f"{value} of {wanted} layers are {rule.rung}"
        return [row(RuleResult.FAIL, why, None, value, wanted)]
    if absent or value < wanted:
        gone = _in_no_engine_layer(standing, facts.evidence, rule.arm) if joined else []
        hidden = f"; in no engine layer: {_list(gone)}" if gone else ""
        return [
            row(
                RuleResult.INCONCLUSIVE,
                f"{value} are {rule.rung}, {len(open_)} unknown ({_list(sorted(open_))}){hidden}",
                "see why they are unknown: sparsegate report RUN --format md",
                value,
                wanted,
            )
        ]
    also = f", {_list(sorted(named))} among them" if named else ""
    return [row(RuleResult.PASS, f"{value} layers are {rule.rung}{also}", None, value, wanted)]


def stability(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """The named layers (else every layer selected in any build) are selected in at least k of the n builds."""
    row = _row(rule)
    not_here = _not_applicable("selected", facts.evidence)
    if not_here:
        return [row(RuleResult.INCONCLUSIVE, not_here, "build with TensorRT")]
    builds = builds_of(facts.evidence, rule.arm)
    wanted = rule.builds or len(builds)
    if len(builds) < max(2, wanted):
        return [
            row(
                RuleResult.INCONCLUSIVE,
                f"{len(builds)} builds of {rule.arm} were read",
                f"set build.repeats to {max(2, wanted)} or more",
                len(builds),
                wanted,
            )
        ]
    layers = [_of_build(build, "selected") for build in builds]
    every = {layer for standing in layers for layer, rung in standing.by_layer.items() if rung is Rung.YES}
    if rule.layers:
        found = [_named(rule.layers, standing) for standing in layers]
        every = {layer for named, _ in found for layer in named}
        missing = [pattern for pattern in rule.layers if all(pattern in absent for _, absent in found)]
        if missing:
            return [row(RuleResult.FAIL, f"no layer is called {', '.join(missing)}", SEE_NAMES, None, wanted)]
    times = {layer: [standing.by_layer.get(layer, Rung.UNKNOWN) for standing in layers] for layer in sorted(every)}
    sure = {layer: sum(rung is Rung.YES for rung in rungs_) for layer, rungs_ in times.items()}
    possible = {layer: sum(rung not in (Rung.NO, Rung.NOT_APPLICABLE) for rung in rungs_) for layer, rungs_ in times.items()}
    if not times:
        return [row(RuleResult.FAIL, "no layer is selected in any build", None, 0, wanted)]
    worst = min(sure, key=lambda layer: sure[layer])
    why = f"{worst} is selected in {sure[worst]} of {len(builds)} builds, the fewest of {len(times)} layers"
    if sure[worst] >= wanted:
        return [row(RuleResult.PASS, why, None, sure[worst], wanted)]
    outcome = RuleResult.FAIL if min(possible.values()) < wanted else RuleResult.INCONCLUSIVE
    return [row(outcome, why, "rebuild with a timing cache, or see what differs: sparsegate diff RUN", sure[worst], wanted)]


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


def _not_applicable(rung: str, evidence: Evidence) -> str | None:
    if rung not in TACTIC_RUNGS:
        return None
    if evidence.build is not None and evidence.build.sparse_kernels is False:
        return f"{evidence.build.backend} has no sparse kernels: `{rung}` is not applicable there"
    if evidence.tactics is not None and not evidence.tactics.applicable:
        return evidence.tactics.why_not or f"`{rung}` is not applicable"
    return None


def _names_only(evidence: Evidence, arm: str) -> bool:
    """Layer info was read for the arm's build, and not one layer has a kernel's name."""
    report = evidence.tactics
    for build in builds_of(evidence, arm)[:1]:
        info = report is not None and any(report.sources[at].kind == "layer-info" for at in build.sources if at < len(report.sources))
        return info and not any(layer.tactic and layer.tactic.name for layer in build.layers)
    return False


def _named(patterns: list[str], standing: Standing) -> tuple[set[str], list[str]]:
    """Layers that a pattern matches by any of their names, and the patterns that match none."""
    matched = {
        pattern: {layer for layer, names in standing.names.items() if any(matches(name, pattern) for name in names)} for pattern in patterns
    }
    return set().union(*matched.values()), [pattern for pattern, layers in matched.items() if not layers]


def matches(name: str, pattern: str) -> bool:
    """Glob match with `*` and `?`; `[` is literal, since layer names hold brackets."""
    return fnmatchcase(name, re.sub(r"\[", "[[]", pattern))


def _list(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _counted(rule: Rule) -> str:
    """What a number of layers counts: an engine has layers of its own, fused or split otherwise than the model's."""
    if rule.rung not in TACTIC_RUNGS:
        return f"{rule.rung} layers of {rule.arm}"
    return f"{rule.rung} {'model' if rule.at_least == 'all' else 'engine'} layers of {rule.arm}"


def _row(rule: Rule) -> Callable[..., JudgedRule]:
    what = _counted(rule) if rule.kind == "rungs" else f"sparse tactics of {rule.arm} over its builds"
    least = rule.at_least if isinstance(rule.at_least, str) or rule.at_least is None else f"{rule.at_least:g}"
    wanted = [f"at least {least}"] if least is not None else []
    wanted += [f"in at least {rule.builds or 'all'} builds"] if rule.kind == "stability" else []
    wanted += [f"with {_list(rule.layers)}"] if rule.layers else []
    key = ",".join([*([f"{rule.at_least}"] if rule.at_least is not None else []), *rule.layers])
    of = f"{rule.kind}:{rule.arm}" + (f":{rule.rung}" if rule.rung else "") + (f":{key}" if key else "")

    def row(outcome: RuleResult, why: str, needs: str | None, value: float | None = None, budget: float | None = None) -> JudgedRule:
        return JudgedRule(
            id=of,
            kind=rule.kind,
            outcome=outcome,
            text=f"{what}: {', '.join(wanted)}",
            why=why,
            needs=needs,
            value=value,
            budget=budget,
            unit="layers" if rule.kind == "rungs" else "builds",
        )

    return row
