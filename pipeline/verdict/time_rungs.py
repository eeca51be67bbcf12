"""Rung 7 in words: is the layer faster than in the dense arm, at every shape that was profiled?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pipeline.records.evidence import Evidence
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung
from pipeline.verdict.claims import ARM, OVER, Claim, together
from pipeline.verdict.joining import build_of, nodes_of
from pipeline.verdict.layer_times import GroupTime, compare
from pipeline.verdict.missing import why_missing


class TimeRungs:
    """Rung 7 of every layer, from the layer profiles of the sparse and the dense arm."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.groups: list[GroupTime] = []
        self._controls: dict[str, list[GroupTime]] = {}
        if evidence.measure:
            nodes = _engine_nodes(evidence)
            self.groups = compare(evidence.measure.layers, arm=ARM, over=OVER, nodes=nodes)
            self._controls = _by_node(_controls(evidence, nodes))
        self._by_node = _by_node(self.groups)
        self._simulated = evidence.measure.conditions.simulated if evidence.measure else None

    def of(self, layer: WeightedLayer) -> Claim:
        """How rung 7 stands for one weighted layer: yes only where every profiled shape says so."""
        if self._evidence.measure is None:
            return Claim(Rung.UNKNOWN, why_missing(self._evidence, "measure"))
        if not self._evidence.measure.layers:
            return Claim(Rung.UNKNOWN, "no layer profile was taken")
        groups = self.groups_of(layer)
        if not groups:
            return Claim(Rung.UNKNOWN, "no profiled layer is known to hold its ONNX nodes in both arms")
        claims = [self._judge(group) for group in groups]
        text = "; ".join(claim.text for claim in claims)
        if self._simulated:
            return Claim(Rung.UNKNOWN, f"{text}; but the times are not from an engine that ran here: {self._simulated}")
        return Claim(together([claim.rung for claim in claims]), text)

    def _judge(self, group: GroupTime) -> Claim:
        """Rung 7 of a group, unless two engines with the same kernels differ as much at the same nodes."""
        claim = judge_group(group)
        same = [item for item in self._at(self._controls, sorted(group.nodes)) if item.shape == group.shape and _leaves_out_1(item)]
        if not same or claim.rung is Rung.UNKNOWN or same[0].ratio is None:
            return claim
        found = same[0].ratio
        return Claim(
            Rung.UNKNOWN, f"{claim.text}; but its control, two engines alike, reads {found.value:.3f}x [{found.low:.3f}, {found.high:.3f}]"
        )

    def groups_of(self, layer: WeightedLayer) -> list[GroupTime]:
        """The groups that hold one of the layer's nodes, over all shapes."""
        return self._at(self._by_node, layer.onnx_nodes)

    @staticmethod
    def _at(groups: Mapping[str, list[GroupTime]], nodes: Iterable[str]) -> list[GroupTime]:
        found = {id(group): group for node in nodes for group in groups.get(node, ())}
        return list(found.values())


def _engine_nodes(evidence: Evidence) -> dict[str, dict[str, frozenset[str]]]:
    """By arm, engine layer name -> ONNX nodes, from the tactic record."""
    if evidence.tactics is None:
        return {}
    builds = {arm: build_of(evidence.tactics, arm) for arm in (ARM, OVER)}
    return {arm: {layer.name: nodes_of(layer) for layer in build.layers} for arm, build in builds.items() if build}


def _by_node(groups: Iterable[GroupTime]) -> dict[str, list[GroupTime]]:
    found: dict[str, list[GroupTime]] = defaultdict(list)
    for group in groups:
        for node in sorted(group.nodes):
            found[node].append(group)
    return found


def _controls(evidence: Evidence, nodes: dict[str, dict[str, frozenset[str]]]) -> list[GroupTime]:
    """The same groups in pairs of arms that run the same kernels."""
    pairs = [pair for pair in (evidence.build.controls if evidence.build else ()) if len(pair) == 2 and ARM in pair]
    times = evidence.measure.layers if evidence.measure else []
    return [group for arm, over in pairs for group in compare(times, arm=arm, over=over, nodes=nodes, together=False)]


def _leaves_out_1(group: GroupTime) -> bool:
    found = group.ratio
    return found is not None and found.low is not None and found.high is not None and not found.low <= 1 <= found.high


def judge_group(group: GroupTime) -> Claim:
    """Rung 7 of one group at its shape."""
    if group.myelin:
        return Claim(Rung.UNKNOWN, f"at {group.shape} inside a Myelin region, whose layers a profile does not tell apart")
    found = group.ratio
    if found is None or found.low is None or found.high is None:
        mine, theirs = group.passes
        needed = f"at least {group.passes_needed} in each arm are needed"
        return Claim(Rung.UNKNOWN, f"at {group.shape} {mine} and {theirs} profiling passes: {needed}")
    text = f"{found.value:.3f}x [{found.low:.3f}, {found.high:.3f}] of its time in the {OVER} arm at {group.shape} ({found.n} passes)"
    if found.high < 1:
        return Claim(Rung.YES, text)
    return Claim(Rung.NO if found.low >= 1 else Rung.UNKNOWN, text)
