"""Which ONNX nodes an ONNX Runtime kernel computes, by the names that its optimiser gives to fused kernels.

Seen in 1.32: a fused kernel is `fused <node>`, or `<output>_nchwc` after the tensor that the last fused node wrote; an
unfused one keeps its node's name; kernels that the optimiser adds (`ReorderOutput`) belong to no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

FUSED = "fused "
BLOCKED = "_nchwc"


def onnx_nodes(plan: Path, kernels: Sequence[str]) -> dict[str, list[str]]:
    """Names of the ONNX nodes by kernel; empty for a kernel that belongs to none.

    Args:
        plan: The ONNX file that was loaded.
        kernels: Kernel names as the profiler prints them.

    A node that no kernel is named after was fused into the kernel that reads its output.
    """
    import onnx

    graph = onnx.load(str(plan), load_external_data=False).graph
    owner = {node: kernel for kernel in kernels if (node := _named_node(graph, kernel)) is not None}
    readers: dict[str, list[Any]] = {}
    for node in graph.node:
        for tensor in node.input:
            readers.setdefault(tensor, []).append(node)
    for node in reversed(graph.node):  # ONNX graphs are sorted: every reader stands after what it reads
        if node.name not in owner:
            found = {owner.get(reader.name) for tensor in node.output for reader in readers.get(tensor, [])}
            if len(found) == 1 and (kernel := found.pop()) is not None:
                owner[node.name] = kernel
    nodes: dict[str, list[str]] = {kernel: [] for kernel in kernels}
    for node in graph.node:
        if node.name in owner:
            nodes[owner[node.name]].append(node.name)
    return nodes


def _named_node(graph: Any, kernel: str) -> str | None:
    """The node that a kernel is named after: by its own name, or by the tensor that it writes."""
    name = kernel.removeprefix(FUSED)
    by_name = next((node.name for node in graph.node if node.name == name), None)
    tensor = name.removesuffix(BLOCKED)
    return by_name or next((node.name for node in graph.node if tensor in node.output), None)
