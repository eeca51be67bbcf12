"""At most how much faster, by the profiled share of the layers that were pruned."""

from __future__ import annotations

from statistics import median

from pipeline.records.estimate import SPARSE_RATIO, ProfileBound
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import LayerTime
from pipeline.records.rung import Rung
from pipeline.verdict.joining import build_of, nodes_of
from pipeline.verdict.matching import reformatted

ARMS = ("twin", "dense")
"""Engines that run no sparse kernel; the twin first, since it differs from the sparse arm in the flag alone."""


def bounds(evidence: Evidence) -> list[ProfileBound]:
    """One bound per profiled shape; none for a backend without sparse kernels, whose times say nothing of a GPU's."""
    measured = evidence.measure
    if measured is None or evidence.export is None or (evidence.build is not None and evidence.build.sparse_kernels is False):
        return []
    arm = next((name for name in ARMS if any(time.arm == name for time in measured.layers)), None)
    if arm is None:
        return []
    able = {node for item in evidence.export.layers if item.proof is Rung.YES for node in item.layer.onnx_nodes}
    nodes = _nodes(evidence, arm)
    shapes = dict.fromkeys(time.shape for time in measured.layers if time.arm == arm)
    return [_bound(arm, shape, [t for t in measured.layers if (t.arm, t.shape) == (arm, shape)], able, nodes) for shape in shapes]


def _nodes(evidence: Evidence, arm: str) -> dict[str, frozenset[str]]:
    build = build_of(evidence.tactics, arm) if evidence.tactics else None
    return {layer.name: nodes_of(layer) for layer in build.layers} if build else {}


def _bound(arm: str, shape: str, times: list[LayerTime], able: set[str], nodes: dict[str, frozenset[str]]) -> ProfileBound:
    """A layer that holds a pruned node counts whole, and so does one whose nodes are not known; reformats belong to their layer."""
    total = eligible = unmatched = 0.0
    for time in times:
        ms = median(time.passes_ms) if time.passes_ms else 0.0
        held = frozenset(time.onnx_nodes) or nodes.get(time.layer) or nodes.get(reformatted(time.layer)) or frozenset()
        total += ms
        unmatched += 0.0 if held else ms
        eligible += ms if not held or held & able else 0.0
    return ProfileBound.of(f"the profile of the {arm} arm at {shape}", total, eligible, ratio=SPARSE_RATIO, unmatched_ms=unmatched)
