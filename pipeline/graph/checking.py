"""The whole check: open, trace, judge, apply the rules, and put it into a record."""

from __future__ import annotations

from pathlib import Path

from pipeline.graph.judge import Judgement, Pages, judge
from pipeline.graph.model import Model, open_model
from pipeline.graph.rules import apply_rules
from pipeline.graph.scopes import node_name
from pipeline.graph.siblings import siblings
from pipeline.graph.targets import Aim, aim
from pipeline.graph.trace import Trace, trace
from pipeline.records.check import CheckedLayer, CheckedModel, CheckReport, CheckTotals, ExternalFile, Target
from pipeline.records.rung import Rung


def check(path: Path, target: Target) -> CheckReport:
    """Say for every weight of an ONNX file whether it is 2:4 where its operator reads it, and whether TensorRT would find it eligible.

    Args:
        path: The model; external data is read from its folder.
        target: What it is to run on; what is not said makes rules that depend on it unknown.

    Raises:
        InputError: the file or its external data is missing, cut, outside the model's folder, cyclic, or no ONNX model.
    """
    understood = aim(target)
    model = open_model(path, hashed=True)
    seen = trace(model)
    pages = Pages(model.tensors.release)
    judged = [judge(sighting, pages) for sighting in seen.sightings]
    kept = [one for one in judged if not one.invalid]
    groups = siblings(kept)
    layers = [_layer(one, groups[at], understood) for at, one in enumerate(kept)]
    totals = CheckTotals(
        layers=len(layers),
        two_four=sum(layer.two_four is True for layer in layers),
        eligible=sum(layer.eligible is Rung.YES for layer in layers),
    )
    return CheckReport(model=described(model), target=target, layers=layers, totals=totals, notes=_notes(seen, judged))


def described(model: Model) -> CheckedModel:
    """A model by path and digests, its external data that was opened included."""
    external = [
        ExternalFile(path=file.path.relative_to(model.tensors.folder.root).as_posix(), sha256=file.sha256(), size_bytes=file.size)
        for file in model.tensors.files()
    ]
    return CheckedModel(path=str(model.path), sha256=model.file.sha256(), external=external)


def _layer(one: Judgement, group: list[Judgement], target: Aim) -> CheckedLayer:
    sighting, facts = one.sighting, one.facts
    call, const, value = sighting.call, sighting.const, one.value
    rules, eligible = apply_rules(one, group, target)
    return CheckedLayer(
        node=node_name(call.node),
        graph=call.scope.path,
        op=call.node.op_type,
        weight=const.name if const else None,
        operand=sighting.operand.position,
        shape=list(value.shape) if value else None,
        axis=one.axis,
        dtype=value.dtype.name if value else None,
        two_four=one.two_four,
        groups=facts.groups if facts else None,
        groups_violating=facts.violating if facts else 0,
        located=[list(spot) for spot in facts.located] if facts else [],
        zero_fraction=facts.zeros / facts.size if facts and facts.size else 0.0,
        negative_zeros=facts.negative_zeros if facts else 0,
        nonfinite=facts.nonfinite if facts else 0,
        two_four_on_other_axes=one.other_axes,
        siblings=[node_name(other.sighting.call.node) for other in group],
        path=list(const.path) if const else [],
        quantized=const.quantized.dtype if const and const.quantized else None,
        two_four_before_quantization=one.before.two_four if one.before else None,
        eligible=eligible,
        rules=rules,
    )


def _notes(seen: Trace, judged: list[Judgement]) -> list[str]:
    notes = [f"initializer {name!r} ({size} bytes) is read by no node" for name, size in seen.unread]
    invalid = {id(one.sighting.call.node): one for one in judged if one.invalid}
    notes += [f"{node_name(one.sighting.call.node)!r} is not judged: {one.invalid}" for one in invalid.values()]
    return notes + seen.notes
