"""The stand-in's engines: which layers of a real ONNX file there are, which are 2:4, and made-up tactics and times.

onnx and numpy are imported where they are needed: a timing process needs neither, and tests start hundreds of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MAGIC = b"sparsegate stand-in plan, no TensorRT\n"
AXIS = {"Conv": lambda node: 1, "Gemm": lambda node: 1 if _attribute(node, "transB") else 0, "MatMul": lambda node: 0}
TYPES = {1: "float32", 10: "float16", 7: "int64", 6: "int32"}
BYTES = {"float32": 4, "float16": 2, "int64": 8, "int32": 4}


def _attribute(node: Any, name: str) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), 0)


@dataclass
class Layer:
    name: str
    nodes: list[str]
    two_four: bool
    times: dict[str, float]
    """Kernel -> ms."""
    tactic: str = ""

    @property
    def sparse(self) -> bool:
        return "sparse" in self.tactic


@dataclass
class Engine:
    onnx: bytes
    version: str
    sparse: bool
    profiles: list[dict[str, dict[str, list[int]]]]
    layers: list[Layer]
    inputs: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    error: str = ""

    def plan(self) -> bytes:
        head = {key: value for key, value in asdict(self).items() if key not in ("onnx", "times")}
        return MAGIC + json.dumps(head).encode() + b"\n" + self.onnx

    def layer_info(self, *, detailed: bool) -> dict[str, Any]:
        if not detailed:
            return {"Layers": [layer.name for layer in self.layers], "Bindings": []}
        rows = [
            {
                "Name": layer.name,
                "LayerType": "CaskConvolution",
                "ParameterType": "Convolution",
                "HasSparseWeights": int(layer.two_four and self.sparse),
                "TacticName": layer.tactic,
                "TacticValue": f"0x{abs(hash_of(layer.tactic)):016x}",
                "StreamId": 0,
                "Metadata": "\u001e".join(f"[ONNX Layer: {node}]" for node in layer.nodes),
            }
            for layer in self.layers
        ]
        return {"Layers": rows, "Bindings": []}

    def shapes(self, given: dict[str, list[int]], profile: int) -> dict[str, list[int]] | str:
        found = {}
        for name, (_, shape) in self.inputs.items():
            if -1 not in shape:
                found[name] = shape
                continue
            ranges = self.profiles[profile][name] if profile < len(self.profiles) else None
            wanted = given.get(name, ranges["opt"] if ranges else [abs(extent) for extent in shape])
            if ranges and not all(low <= extent <= high for low, extent, high in zip(ranges["min"], wanted, ranges["max"], strict=True)):
                return f"Static dimensions of {name} do not satisfy the optimization profile {profile}"
            found[name] = wanted
        return found

    def feeds(self, files: dict[str, str], shapes: dict[str, list[int]]) -> dict[str, bytes] | str:
        """Raw bytes by input name, of the right length."""
        found = {}
        for name, (kind, _) in self.inputs.items():
            if name not in files:
                return f"no input for {name}"
            data = Path(files[name]).read_bytes()
            if len(data) != BYTES[kind] * math.prod(shapes[name]):
                return f"Input {name} file has {len(data)} bytes"
            found[name] = data
        return found

    def time(self, count: int, *, transfers: bool) -> list[dict[str, float]]:
        base = sum(layer.times[layer.tactic] for layer in self.layers)
        rng = random.Random(time.time_ns())
        rows, clock = [], 0.0
        for _ in range(count):
            compute = base * rng.lognormvariate(0.0, 0.01)
            copy = 0.01 if transfers else 0.0
            rows.append(
                {
                    "startEnqMs": clock,
                    "endEnqMs": clock + 0.004,
                    "startComputeMs": clock + copy,
                    "endComputeMs": clock + copy + compute,
                    "h2dMs": copy,
                    "computeMs": compute,
                    "d2hMs": copy,
                    "latencyMs": compute + 2 * copy,
                }
            )
            clock += compute + 2 * copy
        return rows

    def profile(self, count: int) -> list[dict[str, Any]]:
        rng = random.Random(time.time_ns())
        total = sum(layer.times[layer.tactic] for layer in self.layers)
        rows: list[dict[str, Any]] = [{"count": count}]
        for layer in self.layers:
            mean = layer.times[layer.tactic] * rng.lognormvariate(0.0, 0.01)
            rows.append({"name": layer.name, "timeMs": mean * count, "averageMs": mean, "medianMs": mean, "percentage": 100 * mean / total})
        return rows

    def output_text(self, data: dict[str, bytes], shapes: dict[str, list[int]]) -> str:
        import numpy as np
        import onnxruntime

        feeds = {name: np.frombuffer(data[name], dtype=kind).reshape(shapes[name]) for name, (kind, _) in self.inputs.items()}

        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(self.onnx, settings, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        rows = []
        for name, array in zip(names, session.run(names, feeds), strict=True):
            values = ", ".join(f"{value:g}" for value in array.ravel())  # nan and inf as C++ prints them
            rows.append(f'{{ "name" : "{name}"\n  , "dimensions" : "{"x".join(map(str, array.shape))}"\n  , "values" : [ {values} ]\n  }}')
        return "[\n  " + "\n, ".join(rows) + "\n]\n"


def hash_of(text: str) -> int:
    import zlib

    return zlib.crc32(text.encode()) | zlib.crc32(text[::-1].encode()) << 32


def build(path: Path, *, sparse: bool, profiles: list[Any], version: str, cache: Path | None, only_cache: bool) -> Engine:
    try:
        facts, data = read(path)
    except Exception as error:  # noqa: BLE001 (whatever it was, the log says so)
        return Engine(b"", version, sparse, [], [], error=f"Failed to parse onnx file: {type(error).__name__}")
    known = set(json.loads(cache.read_text())) if cache and cache.is_file() and cache.stat().st_size else set()
    times = json.loads(cache.read_text()) if known else {}
    inputs = {name: (kind, list(shape)) for name, (kind, shape) in facts["inputs"].items()}
    made = Engine(data, version, sparse, profiles, _layers(facts["layers"], sparse, times), inputs, times)
    wrong = sorted({name for profile in profiles for name in profile} - set(inputs))
    if wrong:
        made.error = f'Cannot find input tensor with name "{wrong[0]}" in the network inputs!'
    if only_cache and len(times) > len(known) and known:
        made.error = "Timing cache miss"
    return made


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """What is used of an ONNX file, and the file with its weights inside.

    A file that was read before is known by its bytes (folder STANDIN_CACHE): importing onnx takes longer than all else here.
    """
    beside = path.with_name(f"{path.name}.data")
    digest = hashlib.sha256(path.read_bytes() + (beside.read_bytes() if beside.is_file() else b"")).hexdigest()
    folder = os.environ.get("STANDIN_CACHE")
    kept = Path(folder, digest) if folder else None
    if kept is not None and kept.with_suffix(".json").is_file():
        return json.loads(kept.with_suffix(".json").read_text()), kept.with_suffix(".onnx").read_bytes()
    import onnx

    model = onnx.load(str(path))
    facts = {"inputs": _inputs(model), "layers": _weighted(model)}
    data: bytes = model.SerializeToString()
    if kept is not None:
        for suffix, content in ((".onnx", data), (".json", json.dumps(facts).encode())):  # the one that is looked for comes last
            part = kept.with_suffix(f"{suffix}.{os.getpid()}")
            part.write_bytes(content)
            part.rename(kept.with_suffix(suffix))
    return facts, data


def _inputs(model: Any) -> dict[str, tuple[str, list[int]]]:
    weights = {tensor.name for tensor in model.graph.initializer}
    return {
        value.name: (TYPES[value.type.tensor_type.elem_type], [dim.dim_value or -1 for dim in value.type.tensor_type.shape.dim])
        for value in model.graph.input
        if value.name not in weights
    }


def load(path: Path) -> Engine | None:
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        return None
    head, _, model = data[len(MAGIC) :].partition(b"\n")
    fields = json.loads(head)
    fields["layers"] = [Layer(**layer) for layer in fields["layers"]]
    return Engine(onnx=model, **fields)


def _weighted(model: Any) -> list[dict[str, Any]]:
    """The nodes that multiply by a weight, each with the ReLU that follows it."""
    from onnx import numpy_helper

    graph = model.graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    after = {name: node for node in graph.node for name in node.input}
    found = []
    for node in graph.node:
        if node.op_type not in AXIS or len(node.input) < 2 or node.input[1] not in weights:
            continue
        weight = weights[node.input[1]]
        nodes = [node.name or node.output[0]]
        following = after.get(node.output[0])
        if following is not None and following.op_type == "Relu":
            nodes.append(following.name or following.output[0])
        found.append({"nodes": nodes, "two_four": _two_four(weight, AXIS[node.op_type](node)), "size": weight.size})
    return found


def _layers(weighted: list[dict[str, Any]], sparse: bool, times: dict[str, dict[str, float]]) -> list[Layer]:
    found = []
    for item in weighted:
        name, two_four = " + ".join(item["nodes"]), item["two_four"]
        key = f"{name}:{sparse}:{two_four}"
        if key not in times:
            times[key] = _tune(item["size"], two_four and sparse)
        layer = Layer(name, item["nodes"], two_four, times[key])
        layer.tactic = min(layer.times, key=layer.times.__getitem__)
        found.append(layer)
    return found


def _two_four(weight: Any, axis: int) -> bool:
    import numpy as np

    if weight.shape[axis] % 4:
        return False
    groups = np.moveaxis(weight, axis, -1).reshape(-1, 4)
    return bool(((groups != 0).sum(axis=1) <= 2).all())


def _tune(size: int, sparse: bool) -> dict[str, float]:
    """Made-up times: sparse is 20 % faster on big weights and slower on small ones, with the noise of tuning."""
    rng = random.Random(time.time_ns())
    base = 0.2 + size * 1e-6
    found = {
        f"sm80_xmma_fprop_implicit_gemm_f16f16_tilesize{tile}_tensor16x8x16": base * rng.uniform(1.0, 1.03) for tile in ("128x64", "64x64")
    }
    if sparse:
        factor = 0.8 if size >= 512 else 1.2
        found["sm80_xmma_fprop_sparse_conv_f16f16_tilesize128x64_sptensor16x8x32"] = base * factor * rng.uniform(1.0, 1.03)
    return found
