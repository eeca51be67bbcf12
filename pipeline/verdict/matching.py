"""Which engine layers of one build are which of another: through the ONNX nodes that they hold, however each build fused them.

A name is no identity: fusions rename layers, and a version may fuse otherwise. Layers of both builds that share an ONNX node
belong together, and so on: the components of that relation are the smallest groups that hold the same nodes on both sides.
Where one log has ONNX metadata and the other has names alone, a layer with metadata goes by the parts of its name too: metadata
need not list every node that a layer holds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Sequence, Set
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


def is_reformat(layer: TacticLayer) -> bool:
    """Whether an engine layer only changes the format of another's input or output, whose name it carries.

    >>> is_reformat(TacticLayer(id="x", name="Reformatting CopyNode for Output Tensor 0 to a || b [profile 1]"))
    True
    """
    return bool(reformatted(PROFILE.sub("", layer.name)))


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
    bare = {_key(layer, part) for layers in builds for layer in layers if not layer.onnx_nodes for part in _plain_parts(layer)}
    named = [_with_nodes(layers, bare) for layers in builds]
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


_Key = tuple[int, str]
"""Profile and node."""

_Named = tuple[TacticLayer, frozenset[_Key], bool]


def _key(layer: TacticLayer, node: str) -> _Key:
    return layer.profile or 0, node


def _with_nodes(layers: Sequence[TacticLayer], bare: Set[_Key]) -> list[_Named]:
    """Each layer with its nodes by profile, and whether it is a reformat, which takes the nodes of its layer.

    Args:
        layers: One build's layers.
        bare: Name parts of the layers of all builds that have no metadata: what names may be matched by.
    """
    own = {layer.name: plain_nodes(layer) for layer in layers}
    found = []
    for layer in layers:
        served = reformatted(PROFILE.sub("", layer.name))
        nodes = own.get(served) or own.get(f"{served} [profile {layer.profile}]") if served else None
        keys = {_key(layer, node) for node in nodes or own[layer.name]}
        found.append((layer, frozenset(keys | ({_key(layer, part) for part in _plain_parts(layer)} & bare)), bool(served)))
    return found


def plain_nodes(layer: TacticLayer) -> frozenset[str]:
    """ONNX nodes of a layer without what TensorRT wraps about names.

    >>> layer = TacticLayer(id="x", name="a + PWN(b) [profile 1]", parts=["a", "PWN(b) [profile 1]"])
    >>> sorted(plain_nodes(layer))
    ['a', 'b']
    """
    return frozenset(_plain(node) for node in nodes_of(layer))


def _plain_parts(layer: TacticLayer) -> frozenset[str]:
    """Parts of a layer's name, whatever its metadata; none for a reformat, which is named after another layer."""
    return frozenset() if is_reformat(layer) else frozenset(map(_plain, layer.parts or [layer.name]))


def _plain(node: str) -> str:
    node = PROFILE.sub("", node)
    while match := WRAPPER.match(node):
        node = match["inner"]
    return node
