"""Which ONNX nodes an engine layer computes, as TensorRT's layer information has it (Metadata, from 10.0 on)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from pipeline.records.engines import Engine

ONNX_LAYER = re.compile(r"\[ONNX Layer: ([^\]\x1e]*)\]")


def onnx_nodes(engine: Engine, folder: Path, layers: Sequence[str]) -> dict[str, list[str]]:
    """Names of the ONNX nodes by profiled layer; empty where the layer information names none."""
    nodes: dict[str, list[str]] = {layer: [] for layer in layers}
    if engine.layer_info is None:
        return nodes
    try:
        entries = json.loads((folder / engine.layer_info.path).read_text(encoding="utf-8", errors="replace"))["Layers"]
    except (OSError, ValueError, KeyError, TypeError):
        return nodes
    for entry in entries:
        if isinstance(entry, dict) and (name := entry.get("Name")) in nodes:
            nodes[name] = list(dict.fromkeys([*nodes[name], *ONNX_LAYER.findall(str(entry.get("Metadata", "")))]))
    return nodes
