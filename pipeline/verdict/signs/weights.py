"""Signs in weights, files and the ONNX check."""

from __future__ import annotations

from pipeline.records.check import CheckedLayer, Outcome
from pipeline.records.evidence import Evidence
from pipeline.records.rung import Rung
from pipeline.verdict.claims import ARM, OVER

MANY_ZEROS = 0.4
"""Share of zeros from which a layer was evidently pruned: 2:4 leaves 0.5, a dense layer none."""
FILES = ("file", "state_dict", "plan")
"""Sizes of whole files that hold the weights uncompressed."""
SAME_SIZE = 0.98
"""A file of at least this share of the dense one's size did not shrink."""


def regrowth(evidence: Evidence) -> list[str]:
    """Layers whose zeros were lost before freezing."""
    if evidence.freeze is None:
        return []
    lost = [f"freeze: {item.layer.id}: {item.text}" for item in evidence.freeze.layers if item.proof is Rung.NO]
    return [*lost, *(f"freeze: {weight} had grown back and was masked again" for weight in evidence.freeze.remasked)]


def other_outputs(evidence: Evidence) -> list[str]:
    """Frozen weights or ONNX files whose outputs differ from their origin's."""
    found = []
    if evidence.freeze and evidence.freeze.max_difference != 0:
        found.append(f"freeze: outputs differ by up to {evidence.freeze.max_difference:.3g} from the masked model")
    for item in evidence.export.parity if evidence.export else ():
        if not (item.passed and item.rows_identical and item.repeatable):
            kinds = [] if item.rows_identical else ["equal rows gave other outputs"]
            kinds += [] if item.repeatable else ["the same call gave other outputs"]
            kinds += [] if item.passed else [f"worst difference {item.max_abs:.3g}, relative {item.max_rel:.3g}"]
            found.append(f"export: {item.arm} at batch {item.batch}: {', '.join(kinds)}")
    return [*found, *_other_engines(evidence)]


def _other_engines(evidence: Evidence) -> list[str]:
    """Engines whose outputs differ from those of an engine or file of the same weights."""
    return [
        f"measure: {item.engine} against {item.against} at {item.shape} of profile {item.profile} ({item.probe} inputs): "
        f"{item.max_rel:.3g} of the largest output, {item.new_nonfinite} values newly NaN or infinite"
        for item in (evidence.measure.parity if evidence.measure else ())
        if not item.passed
    ]


def checked_layers(evidence: Evidence) -> list[CheckedLayer]:
    """The ONNX check of the sparse arm."""
    arms = evidence.export.arms if evidence.export else ()
    return next((arm.check.layers for arm in arms if arm.arm == ARM), [])


def unstructured(evidence: Evidence) -> list[str]:
    """Layers with many zeros that are not 2:4 where their operator reads them."""
    found = []
    for item in checked_layers(evidence):
        if item.two_four is False and item.zero_fraction >= MANY_ZEROS:
            other = f", but 2:4 along axis {', '.join(map(str, item.two_four_on_other_axes))}" if item.two_four_on_other_axes else ""
            zeros = f"{item.zero_fraction:.1%} zeros, {item.groups_violating} groups of 4 hold more than 2 values"
            found.append(f"export: {item.node}: {zeros} along axis {item.axis}{other}")
    return found


def unsupported(evidence: Evidence) -> list[str]:
    """Layers that are 2:4 and yet not eligible, with the rule; a GPU or a precision that rules all out."""
    found = [
        f"export: {item.node}: {rule.id} {rule.text}"
        for item in checked_layers(evidence)
        if item.two_four and item.eligible is Rung.NO
        for rule in item.rules
        if rule.outcome is Outcome.FAIL
    ]
    for build in evidence.tactics.builds if evidence.tactics else ():
        capability = build.machine.get("compute_capability", "")
        if capability and _below_8(capability):
            found.append(f"tactics: build {build.id} ran on compute capability {capability}; sparse tactics need 8.0")
        if build.sparsity == "enabled" and build.typing != "strong" and build.precision == ["FP32"]:
            found.append(f"tactics: build {build.id} allowed FP32 alone, for which no layer is eligible")
    return found


def _below_8(capability: str) -> bool:
    major = capability.partition(".")[0]
    return major.isdecimal() and int(major) < 8


def unchanged_size(evidence: Evidence) -> list[str]:
    """Files of the sparse arm as large as the dense arm's, though layers are proven 2:4."""
    pruned = any(item.proof is Rung.YES for item in (evidence.export.layers if evidence.export else ()))
    sizes = {(size.arm, size.name): size.bytes for size in (evidence.measure.sizes if evidence.measure else ())}
    return [
        f"measure: {name}: sparse {size} bytes, dense {sizes[OVER, name]} bytes"
        for (arm, name), size in sizes.items()
        if pruned and arm == ARM and name in FILES and (OVER, name) in sizes and size >= SAME_SIZE * sizes[OVER, name]
    ]
