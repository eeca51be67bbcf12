"""Which ONNX nodes read which torch weight: by the initializer's name, else by what the exporter noted on the node.

The exporter renames a Linear's weight to `val_7` when it transposes it in advance, and folds batch norm into a
convolution under the convolution's name; both leave a trace that this module follows (torch 2.14.1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.records.layers import WeightedLayer

if TYPE_CHECKING:
    from pipeline.records.check import CheckedLayer, CheckReport

BORDER = "model."
"""Prefix of names in a file that was exported with casts at its border."""
FX_PARAMETER = re.compile(r"%(?:p|b|c)_([A-Za-z0-9_]+)")


class JoinedLayer(msgspec.Struct, frozen=True):
    """A torch layer with the operands that read its weight."""

    layer: WeightedLayer
    operands: list[CheckedLayer]


def join(path: Path, layers: Sequence[WeightedLayer], report: CheckReport) -> list[JoinedLayer]:
    """Join torch layers to the checked operands of an exported file.

    Args:
        path: The ONNX file (its external data is not read).
        layers: Layers with their state-dict keys.
        report: The check of the same file.

    Returns:
        One entry per layer, in order; `operands` is empty where no node could be traced to the weight.
    """
    parameters = _parameters_by_node(path)
    joined = []
    for layer in layers:
        operands = [checked for checked in report.layers if _reads(checked, layer.weight or "", parameters.get(checked.node, ()))]
        found = msgspec.structs.replace(
            layer,
            onnx_nodes=list(dict.fromkeys(checked.node for checked in operands)),
            initializer=next((c.weight for c in operands), None),
        )
        joined.append(JoinedLayer(found, operands))
    return joined


def _reads(checked: CheckedLayer, weight: str, parameters: Sequence[str]) -> bool:
    name = (checked.weight or "").removeprefix(BORDER)
    if name == weight:
        return True
    mangled = weight.replace(".", "_")
    return any(parameter in (mangled, BORDER.replace(".", "_") + mangled) for parameter in parameters)


def _parameters_by_node(path: Path) -> dict[str, tuple[str, ...]]:
    """Per node the parameters that the exporter saw in its place, with dots as underscores."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    notes = {
        node.name: {entry.key: entry.value for entry in node.metadata_props}.get("pkg.torch.onnx.fx_node", "") for node in model.graph.node
    }
    return {name: tuple(FX_PARAMETER.findall(note)) for name, note in notes.items()}
