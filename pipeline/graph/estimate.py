"""At most how much faster? Upper bounds from work and peaks, or from measured layer times: never a prediction.

Mathematics: every layer takes its operations over the peak; layers that could be eligible get the sparse peak. With traffic
(roofline; Williams et al. 2009): a layer takes the longer of arithmetic and memory, and sparse weights move packed. Both hold
where layers reach alike shares of the peak; whatever is not a weighted operator is left out, which only raises the bound. Where
layer times were measured, their eligible share replaces the shapes (Amdahl 1967), and the bound holds for any efficiency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.graph.gpus import Gpu, Peak
from pipeline.graph.storage import dense_bytes, packed_bytes
from pipeline.records.estimate import GpuBound, LayerWork, ProfileBound, amdahl
from pipeline.records.rung import Rung

PEAK_OF: dict[str, tuple[str, str]] = {
    "float32": ("fp16", "fp32"),
    "float16": ("fp16", "fp32"),
    "bfloat16": ("fp16", "fp32"),
    "int8": ("int8", "int32"),
    "float8_e4m3fn": ("fp8", "fp32"),
}
"""Type of the weights -> type and accumulator of the kernel; fp32 weights count as fp16, as TensorRT would build them for 2:4."""


def could(layer: LayerWork) -> bool:
    """Whether the bound grants the layer a sparse kernel: an open question counts for it."""
    return layer.could is not Rung.NO


def peak_for(gpu: Gpu, dtype: str, accumulate: str | None = None) -> Peak | None:
    """The GPU's peak for weights of a type; None where it lacks that type."""
    kind, usual = PEAK_OF[dtype]
    wanted = usual if accumulate is None or usual == "int32" else accumulate
    return next((peak for peak in gpu.peaks if (peak.dtype, peak.accumulate) == (kind, wanted)), None)


def gpu_bound(layers: Sequence[LayerWork], gpu: Gpu, peak: Peak, dtype: str) -> GpuBound:
    """Both bounds on one GPU.

    Args:
        layers: Work of all weighted operators.
        gpu: The GPU.
        peak: Its row for the type and accumulator; without sparse tensor cores the sparse peak is the dense one.
        dtype: Type that the bytes were counted in.
    """
    sparse = peak.sparse or peak.dense
    total = sum(layer.flops for layer in layers)
    eligible = sum(layer.flops for layer in layers if could(layer))
    dense_s = [_roofline(layer.flops, peak.dense, layer.total_bytes, gpu) for layer in layers]
    sparse_s = [
        min(before, _roofline(layer.flops, sparse, _packed_traffic(layer, dtype), gpu)) if could(layer) and peak.sparse else before
        for layer, before in zip(layers, dense_s, strict=True)
    ]
    return GpuBound(
        gpu=gpu.name,
        sm=gpu.sm,
        kind=f"{peak.dtype} with {peak.accumulate} accumulation",
        dense_tops=peak.dense,
        sparse_tops=sparse,
        gb_per_s=gpu.gb_per_s,
        mathematics=amdahl(total, eligible, sparse / peak.dense) if total else 1.0,
        share=eligible / total if total else 0.0,
        traffic=sum(dense_s) / sum(sparse_s) if total else 1.0,
        memory_bound=sum(layer.flops / (peak.dense * 1e12) < layer.total_bytes / (gpu.gb_per_s * 1e9) for layer in layers),
        source=gpu.source,
    )


def _roofline(flops: int, tops: float, moved: int, gpu: Gpu) -> float:
    """Seconds: the longer of arithmetic and memory."""
    return max(flops / (tops * 1e12), moved / (gpu.gb_per_s * 1e9))


def _packed_traffic(layer: LayerWork, dtype: str) -> int:
    """Bytes moved with the weights held 2:4: half of the values and their metadata."""
    count = layer.weight_bytes // dense_bytes(1, dtype)
    return packed_bytes(count, dtype) + layer.input_bytes + layer.output_bytes


OPAQUE = "ForeignNode"
"""Engine layers of this name hold a range of nodes of which only the ends are named."""


def profile_bound(
    times: Mapping[str, float], nodes: Mapping[str, frozenset[str]], layers: Sequence[LayerWork], ratio: float, source: str
) -> ProfileBound:
    """At most so much faster, by the eligible share of measured time.

    An engine layer counts whole as eligible when it holds any node that could be, or when its nodes are not known: what is
    not known must not lower the bound.

    Args:
        times: ms by engine layer, of a dense engine or one that was built without the sparsity flag.
        nodes: ONNX nodes by engine layer.
        layers: Work of the weighted operators; only whether they could be eligible matters here.
        ratio: Sparse over dense peak.
        source: Where the times are from.
    """
    able = {layer.node for layer in layers if could(layer)}
    open_ = [name for name in times if not nodes.get(name) or OPAQUE in name]
    total = sum(times.values())
    eligible = sum(ms for name, ms in times.items() if name in open_ or nodes[name] & able)
    return ProfileBound.of(source, total, eligible, ratio=ratio, unmatched_ms=sum(times[name] for name in open_))
