"""Which engine layers hold which weighted layer: joined through ONNX node names, many to many."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.tactics import Build, TacticLayer, TacticReport


def nodes_of(layer: TacticLayer) -> frozenset[str]:
    """ONNX nodes of an engine layer: by its metadata, else by the parts of its fused name."""
    return frozenset(layer.onnx_nodes or layer.parts or [layer.name])


class EngineLayers:
    """The layers of one build, found by ONNX node."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self._by_node: dict[str, list[int]] = defaultdict(list)
        for place, layer in enumerate(build.layers):
            for node in nodes_of(layer):
                self._by_node[node].append(place)

    def of(self, layer: WeightedLayer) -> list[TacticLayer]:
        """Engine layers that hold at least one node of a weighted layer, in the build's order, one per profile."""
        places = {place for node in layer.onnx_nodes for place in self._by_node.get(node, ())}
        return [self.build.layers[place] for place in sorted(places)]


def build_of(report: TacticReport, arm: str) -> Build | None:
    """The build of an arm; where builds carry no arm, the only one (or the only one with the sparsity flag on)."""
    named = [build for build in report.builds if build.arm == arm]
    if named:
        return named[0]
    anonymous = [build for build in report.builds if build.arm is None and build.sparsity != "disabled"]
    return anonymous[0] if len(anonymous) == 1 and arm == "sparse" else None


def builds_of(report: TacticReport, arm: str) -> list[Build]:
    """All builds of an arm: `sparse`, `sparse#2`, ... in the report's order."""
    return [build for build in report.builds if build.arm is not None and build.arm.partition("#")[0] == arm]


def weighted_layers(evidence: Evidence) -> list[WeightedLayer]:
    """Every weighted layer of a run once, in the model's order, by the latest record that names it.

    Later records know more: `export` adds ONNX nodes to what `train` knew.
    """
    latest: dict[str, WeightedLayer] = {}
    for layer in _named(evidence):
        latest[layer.id] = layer
    return list(latest.values())


def _named(evidence: Evidence) -> Iterable[WeightedLayer]:
    yield from (item.layer for item in (evidence.train.layers if evidence.train else ()))
    yield from (item.layer for item in (evidence.freeze.layers if evidence.freeze else ()))
    yield from (item.layer for item in (evidence.export.layers if evidence.export else ()))
