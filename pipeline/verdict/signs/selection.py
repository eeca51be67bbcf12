"""Signs in the builder's reports: what was eligible, timed and selected, and what a log cannot show."""

from __future__ import annotations

from math import prod

from pipeline.records.evidence import Evidence
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer
from pipeline.verdict.claims import ARM
from pipeline.verdict.joining import EngineLayers, build_of, builds_of, nodes_of, weighted_layers
from pipeline.verdict.signs.weights import checked_layers

FEW_CHANNELS = 256
"""Below this many output channels, or reduced values per output, sparse kernels rarely win (NVIDIA/TensorRT 3849, 4065)."""
QUANTISED = ("int8", "uint8", "float8")


def _sparse_build(evidence: Evidence) -> Build | None:
    report = evidence.tactics
    return build_of(report, ARM) if report is not None and report.applicable else None


def _lost(build: Build | None) -> list[TacticLayer]:
    return [layer for layer in (build.layers if build else ()) if layer.eligible is Rung.YES and layer.selected is Rung.NO]


def no_sparse_kernels(evidence: Evidence) -> list[str]:
    """The backend cannot go sparse."""
    if evidence.tactics is None or evidence.tactics.applicable:
        return []
    return [f"tactics: {evidence.tactics.why_not or 'not applicable'}"]


def dense_selected(evidence: Evidence) -> list[str]:
    """Eligible layers in which a dense tactic runs, with the reason that is known."""
    lost = _lost(_sparse_build(evidence))
    return [f"tactics: {layer.name}: {'; '.join(reason.text for reason in layer.reasons) or 'no reason known'}" for layer in lost]


def quantised_dense(evidence: Evidence) -> list[str]:
    """Eligible layers with quantised weights in which a dense tactic runs."""
    kinds = {item.node: item.quantized or item.dtype or "" for item in checked_layers(evidence)}
    dtypes = {node: kind for node, kind in kinds.items() if kind.startswith(QUANTISED)}
    return [
        f"tactics: {layer.name}: {node} reads {dtypes[node]}"
        for layer in _lost(_sparse_build(evidence))
        for node in sorted(nodes_of(layer) & dtypes.keys())
    ]


def few_channels(evidence: Evidence) -> list[str]:
    """Masked layers in which a dense tactic runs and that are small."""
    build = _sparse_build(evidence)
    if build is None:
        return []
    engine, found = EngineLayers(build), []
    for layer in weighted_layers(evidence):
        dense = any(item.selected is Rung.NO and item.eligible is Rung.YES for item in engine.of(layer))
        if dense and len(layer.shape) >= 2 and min(layer.shape[0], prod(layer.shape[1:])) < FEW_CHANNELS:
            found.append(f"tactics: {layer.id}: {layer.shape[0]} outputs of {prod(layer.shape[1:])} weights each")
    return found


def cache_hides(evidence: Evidence) -> list[str]:
    """Layers without timing lines because a cache answered."""
    build = _sparse_build(evidence)
    return [
        f"tactics: {layer.name}: {'equal to an earlier layer' if layer.cache == 'repeat' else 'from the timing cache file'}"
        for layer in (build.layers if build else ())
        if layer.cache in ("repeat", "global") and layer.timed is not Rung.YES
    ]


def lines_hidden(evidence: Evidence) -> list[str]:
    """Sparse builds whose log cannot show the lists, or cannot show why dense won."""
    found = []
    for build in builds_of(evidence.tactics, ARM) if evidence.tactics and evidence.tactics.applicable else ():
        if not build.passes and not any(layer.tactic and layer.tactic.name for layer in build.layers):
            found.append(f"tactics: build {build.id} ({build.arm}): no eligible or selected list, no kernel names")
        elif build.log_level_seen != "verbose" and any(layer.best is None for layer in _lost(build)):
            found.append(f"tactics: build {build.id} ({build.arm}): no timed tactics at log level {build.log_level_seen or 'unknown'}")
    return found


def sources_disagree(evidence: Evidence) -> list[str]:
    """Conflicts between sources, of any build."""
    builds = evidence.tactics.builds if evidence.tactics else ()
    return [f"tactics: build {build.id}: {item.code}: {item.text}" for build in builds for item in build.conflicts]


def sparse_twin(evidence: Evidence) -> list[str]:
    """Sparse kernels in an engine that was built without the flag."""
    twins = builds_of(evidence.tactics, "twin") if evidence.tactics else []
    return [
        f"tactics: {build.arm}: {layer.name} runs {layer.tactic.name}"
        for build in twins
        for layer in build.layers
        if layer.tactic is not None and layer.tactic.kind == "sparse"
    ]


def more_than_the_flag(evidence: Evidence) -> list[str]:
    """Engine layers of the sparse build that fuse other nodes, or lie in another region, than the twin's."""
    report = evidence.tactics
    sparse, twin = (build_of(report, arm) if report else None for arm in (ARM, "twin"))
    if sparse is None or twin is None:
        return []
    theirs = {nodes_of(layer): layer for layer in twin.layers if layer.tactic is not None}
    known = frozenset().union(*theirs)
    found = []
    for layer in sparse.layers:
        nodes = nodes_of(layer)
        if layer.tactic is None or not nodes & known:
            continue
        if nodes not in theirs:
            found.append(f"tactics: {layer.name}: fused otherwise in the twin")
        elif theirs[nodes].region != layer.region:
            found.append(f"tactics: {layer.name}: region {layer.region or 'unknown'}, in the twin {theirs[nodes].region or 'unknown'}")
    return found
