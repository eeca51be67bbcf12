"""TensorRT's JSON: layer info (trtexec or the engine inspector), exportProfile, exportTimes; told apart by content."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import msgspec

from pipeline.errors import InputError
from pipeline.tactics.builds import DumpLayer, is_wait, kernel_name, onnx_nodes
from pipeline.tactics.inputs import UnrelatedError

DETAILED = "--profilingVerbosity=detailed"
TIMES_KEYS = {
    "latencyMs": "latency_ms",
    "computeMs": "gpu_compute_ms",
    "h2dMs": "h2d_latency_ms",
    "d2hMs": "d2h_latency_ms",
    "inMs": "h2d_latency_ms",
}
"""exportTimes' keys -> metric names of the report."""
_SIGNS = re.compile(rb'"(?:Layers|LayerType|TacticName|TacticValue|averageMs|latencyMs|computeMs)"\s*:|\[TRT\]|TensorRT\.trtexec')
"""What shows that a file of JSON that cannot be read is TensorRT's, or holds its messages."""
_DAMAGED = "the file is cut or damaged; export it again"
_LINES = "each line is JSON of its own, as docker's json-file logs are: give the messages in it (jq -rj .log FILE | sparsegate tactics -)"


class Document(msgspec.Struct):
    """One JSON file, read."""

    path: str
    source: int
    kind: Literal["layer-info", "profile", "times"]
    layers: list[DumpLayer] = []
    profile_ms: dict[str, float] = {}
    performance: dict[str, float] = {}

    @property
    def names(self) -> set[str]:
        """The engine layers that the file names."""
        return {layer.name for layer in self.layers} | set(self.profile_ms)

    @property
    def detailed(self) -> bool:
        """Whether it says more than names."""
        return self.kind != "layer-info" or any(layer.detailed for layer in self.layers)


def read_document(data: bytes, source: int, path: str) -> Document:
    """Read one JSON file of TensorRT.

    Raises:
        InputError: a document of TensorRT that is damaged.
        UnrelatedError: none of the known documents.
    """
    try:
        content: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refuse = InputError if _SIGNS.search(data) else UnrelatedError
        raise refuse(f"not readable JSON ({error})", where=path, hint=_LINES if _is_lines(data) else _DAMAGED) from None
    if (entries := _entries(content)) is not None:
        layers = [layer for entry in entries if (layer := _layer(entry, source)) is not None]
        return Document(path, source, "layer-info", layers=layers)
    if isinstance(content, list):
        rows = [row for row in content if isinstance(row, dict)]
        if any("averageMs" in row for row in rows) or (rows and set(rows[0]) == {"count"}):
            return Document(path, source, "profile", profile_ms=_profile(rows))
        if any("latencyMs" in row or "computeMs" in row for row in rows):
            return Document(path, source, "times", performance=_times(rows))
    if isinstance(content, dict) and str(content.get("schema", "")).startswith("sparsegate."):
        raise UnrelatedError(
            f"this is a report of sparsegate itself ({content['schema']})", where=path, hint="give the log that it was made from"
        )
    raise UnrelatedError(
        "JSON, but neither layer info nor a profile nor times of TensorRT",
        where=path,
        hint="trtexec writes them with --exportLayerInfo, --exportProfile, --exportTimes",
    )


def _is_lines(data: bytes) -> bool:
    """Whether the first line is a whole document."""
    try:
        msgspec.json.decode(data.partition(b"\n")[0])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _entries(content: Any) -> list[Any] | None:
    """The layers of a whole engine, or those that the inspector was asked for one by one; None where it is no layer info."""
    if isinstance(content, dict):
        layers = content.get("Layers")
        return layers if isinstance(layers, list) else [content] if _is_layer(content) else None
    return content if isinstance(content, list) and content and all(map(_is_layer, content)) else None


def _is_layer(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("Name"), str) and isinstance(entry.get("LayerType"), str)


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
        kernel_name(_text(entry.get("TacticName"))),
        value.lower() if value else None,
        bool(sparse) if isinstance(sparse, int) else None,
        onnx_nodes(_text(entry.get("Metadata")) or ""),
        _formats(entry),
    )


def _formats(entry: dict[str, Any]) -> str | None:
    ends = [_ends(entry.get(key)) for key in ("Inputs", "Outputs")]
    return " -> ".join(ends) if any(ends) else None


def _ends(tensors: Any) -> str:
    if not isinstance(tensors, list):
        return ""
    return ", ".join(str(tensor.get("Format/Datatype", "")) for tensor in tensors if isinstance(tensor, dict))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _profile(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Average ms by engine layer; rows of waits for the DLA are no layers."""
    found: dict[str, float] = {}
    for row in rows:
        name, mean = row.get("name"), _number(row.get("averageMs"))
        if isinstance(name, str) and mean is not None and not is_wait(name):
            found[name] = mean
    return found


def _times(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Mean, median and 99th percentile (nearest rank) of each metric, in ms."""
    found: dict[str, float] = {}
    for key, name in TIMES_KEYS.items():
        values = sorted(value for row in rows if (value := _number(row.get(key))) is not None)
        if values and f"{name}.mean" not in found:
            n = len(values)
            found[f"{name}.mean"] = math.fsum(values) / n
            found[f"{name}.median"] = (values[(n - 1) // 2] + values[n // 2]) / 2
            found[f"{name}.p99"] = values[min(n - 1, math.ceil(0.99 * n) - 1)]
    return found
