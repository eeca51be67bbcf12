"""Nodes in an order in which every value is made before it is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.errors import InputError

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

GRAPH, GRAPHS = 5, 10


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Name and graph of every graph attribute of a node."""
    for attribute in node.attribute:
        if attribute.type == GRAPH or attribute.HasField("g"):
            yield attribute.name, attribute.g
        for at, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{at}]", graph


def reads(node: NodeProto) -> Iterator[str]:
    """Names that a node reads, those that its subgraphs take from outside included (and some that they define)."""
    yield from (name for name in node.input if name)
    for _, graph in subgraphs(node):
        for inner in graph.node:
            yield from reads(inner)
        yield from (output.name for output in graph.output)


def in_order(nodes: Sequence[NodeProto], where: str) -> Sequence[NodeProto]:
    """The nodes as they stand where that order is right already (the standard demands it), else sorted.

    Raises:
        InputError: the nodes form a cycle.
    """
    maker = {name: at for at, node in enumerate(nodes) for name in node.output if name}
    needs = [{maker[name] for name in reads(node) if name in maker} for node in nodes]
    if all(max(wanted, default=-1) < at for at, wanted in enumerate(needs)):
        return nodes
    readers: list[list[int]] = [[] for _ in nodes]
    for at, wanted in enumerate(needs):
        for before in wanted:
            readers[before].append(at)
    left = [len(wanted) for wanted in needs]
    ready = deque(at for at, count in enumerate(left) if count == 0)
    order = []
    while ready:
        at = ready.popleft()
        order.append(at)
        for reader in readers[at]:
            left[reader] -= 1
            if not left[reader]:
                ready.append(reader)
    if len(order) < len(nodes):
        stuck = next(at for at, count in enumerate(left) if count)
        name = nodes[stuck].name or (nodes[stuck].output[0] if nodes[stuck].output else nodes[stuck].op_type)
        raise InputError(
            f"the graph has a cycle through node {name!r}", where=where, hint="no runtime can order it; export the model again"
        )
    return [nodes[at] for at in order]
