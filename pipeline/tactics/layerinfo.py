"""Layer info as JSON: what trtexec's --exportLayerInfo and the engine inspector write."""

from __future__ import annotations

from typing import Any

from pipeline.errors import InputError
from pipeline.tactics.builds import DumpLayer, onnx_nodes

DETAILED = "--profilingVerbosity=detailed"


def read_layer_info(document: dict[str, Any], source: int, where: str) -> list[DumpLayer]:
    """The layers of one engine, in engine order; `detailed` is False for those of which only the name is given."""
    layers = document.get("Layers")
    if not isinstance(layers, list):
        raise InputError("layer info without a list of layers", where=where, hint="export it again with --exportLayerInfo")
    return [layer for entry in layers if (layer := _layer(entry, source)) is not None]


def _layer(entry: Any, source: int) -> DumpLayer | None:
    if isinstance(entry, str):
        return DumpLayer(entry, None, source, detailed=False)
    if not isinstance(entry, dict) or not isinstance(entry.get("Name"), str):
        return None
    sparse = entry.get("HasSparseWeights")
    value = _text(entry.get("TacticValue"))
    return DumpLayer(
        entry["Name"],
        None,
        source,
        _text(entry.get("LayerType")),
        _text(entry.get("TacticName")),
        value.lower() if value else None,
        bool(sparse) if isinstance(sparse, int) else None,
        onnx_nodes(_text(entry.get("Metadata")) or ""),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def require_details(layers: list[DumpLayer], where: str) -> None:
    """Layer info alone must say more than names."""
    if not any(layer.detailed for layer in layers):
        raise InputError(
            "the layer info holds only names: it was exported without the details that name kernels",
            where=where,
            hint=f"build and export again with {DETAILED}, or give the build's log too",
        )
