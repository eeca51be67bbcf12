"""Which engine layers of one build are which of another: through the ONNX nodes that they hold, however each build fused them.

A name is no identity: fusions rename layers, and a version may fuse otherwise. Layers of both builds that share an ONNX node
belong together, and so on: the components of that relation are the smallest groups that hold the same nodes on both sides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

import msgspec

from pipeline.records.tactics import TacticLayer
from pipeline.verdict.joining import nodes_of

Node = TypeVar("Node", bound=Hashable)

REFORMATS: tuple[re.Pattern[str], ...] = (
    re.compile(r"^Reformatting CopyNode for (?:Input|Output) Tensor \d+ to (?P<layer>.+)$"),
    re.compile(r"^(?P<layer>.+) (?:input|output) reformatter \d+$"),
)
"""Names of TensorRT's reformat layers (8.x and later; 7.x): `layer` is the engine layer that asked for the other format."""

PROFILE = re.compile(r" \[profile \d+\]$")
"""What TensorRT appends to the names of layers of profiles after the first."""

WRAPPER = re.compile(r"^(?:PWN|PointWise)\((?P<inner>.*)\)$")
"""Point-wise fusions: the inner names are the ONNX nodes."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Engine layers of several builds that hold the same ONNX nodes; one list of layers and of reformats per build."""

    nodes: frozenset[str]
    layers: tuple[tuple[TacticLayer, ...], ...]
    reformats: tuple[tuple[TacticLayer, ...], ...]


def reformatted(name: str) -> str:
    """The engine layer that a reformat layer serves; empty for other layers."""
    return next((match["layer"] for pattern in REFORMATS if (match := pattern.match(name))), "")


def components(sets: Sequence[frozenset[Node]]) -> dict[Node, Node]:
    """Node -> one representative of its component, where the nodes of a set belong together (union-find with path halving)."""
    parent: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        while (up := parent.setdefault(node, node)) != node:
            parent[node] = parent[up]
            node = parent[node]
        return node

    for nodes in sets:
        iterator = iter(nodes)
        first = next(iterator, None)
        if first is None:
            continue
        find(first)
        for node in iterator:
            parent[find(node)] = find(first)
    return {node: find(node) for node in list(parent)}


def group_layers(builds: Sequence[Sequence[TacticLayer]]) -> list[Group]:
    """Groups of engine layers over several builds, in the order of the first build that has them."""
    named = [_with_nodes(layers) for layers in builds]
    root = components([nodes for side in named for _, nodes, _ in side])
    layers: dict[Hashable, list[list[TacticLayer]]] = defaultdict(lambda: [[] for _ in builds])
    copies: dict[Hashable, list[list[TacticLayer]]] = defaultdict(lambda: [[] for _ in builds])
    held: dict[Hashable, set[str]] = defaultdict(set)
    for number, side in enumerate(named):
        for layer, nodes, is_copy in side:
            key = root[next(iter(nodes))]
            held[key] |= {node for _, node in nodes}
            (copies if is_copy else layers)[key][number].append(layer)
    return [
        Group(nodes=frozenset(nodes), layers=tuple(map(tuple, layers[key])), reformats=tuple(map(tuple, copies[key])))
        for key, nodes in held.items()
    ]


_Named = tuple[TacticLayer, frozenset[tuple[int, str]], bool]


def _with_nodes(layers: Sequence[TacticLayer]) -> list[_Named]:
    """Each layer with its nodes by profile, and whether it is a reformat, which takes the nodes of its layer."""
    own = {layer.name: plain_nodes(layer) for layer in layers}
    found = []
    for layer in layers:
        served = reformatted(PROFILE.sub("", layer.name))
        nodes = own.get(served) or own.get(f"{served} [profile {layer.profile}]") if served else None
        found.append((layer, frozenset((layer.profile or 0, node) for node in nodes or own[layer.name]), bool(served)))
    return found


def plain_nodes(layer: TacticLayer) -> frozenset[str]:
    """ONNX nodes of a layer without what TensorRT wraps about names.

    >>> layer = TacticLayer(id="x", name="a + PWN(b) [profile 1]", parts=["a", "PWN(b) [profile 1]"])
    >>> sorted(plain_nodes(layer))
    ['a', 'b']
    """
    return frozenset(_plain(node) for node in nodes_of(layer))


def _plain(node: str) -> str:
    node = PROFILE.sub("", node)
    while match := WRAPPER.match(node):
        node = match["inner"]
    return node
