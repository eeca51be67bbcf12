"""Joins what an estimate needs: the ONNX check, work by shapes, the table of GPUs, and a layer profile where there is one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline import graph
from pipeline.errors import InputError
from pipeline.graph.estimate import PEAK_OF, gpu_bound, peak_for, profile_bound
from pipeline.graph.gpus import pick_gpus
from pipeline.graph.work import Work, measure_work
from pipeline.records.check import CheckedLayer, Target
from pipeline.records.estimate import SPARSE_RATIO, EstimateReport, GpuBound, LayerWork, ProfileBound


def estimate(
    model: Path,
    target: Target,
    *,
    shapes: Mapping[str, list[int]],
    batch: int | None,
    gpus: Sequence[str],
    gpu_table: Path | None,
    accumulate: str | None,
    profile: Path | None,
) -> EstimateReport:
    """As `api.estimate`."""
    checked = graph.check(model, target).layers
    dtype = _dtype(checked)
    work = measure_work(model, checked, shapes, batch, dtype)
    if not work.layers:
        raise InputError(
            "no weighted operator has known shapes", where=str(model), hint="give the inputs' shapes: --shape NAME=1x3x224x224"
        )
    peaks = [(gpu, peak_for(gpu, dtype, accumulate)) for gpu in pick_gpus(list(gpus), gpu_table)]
    bounds = [gpu_bound(work.layers, gpu, peak, dtype) for gpu, peak in peaks if peak is not None]
    lacking = [gpu.name for gpu, peak in peaks if peak is None]
    measured = _from_profile(profile, model, work.layers) if profile else None
    return EstimateReport(
        model=str(model),
        shapes=work.inputs,
        dtype=dtype,
        layers=work.layers,
        gpus=bounds,
        profile=measured,
        notes=[*_notes(work, checked, bounds, measured), *([f"no {dtype} peaks known of {', '.join(lacking)}"] if lacking else [])],
        next=_next(model, bounds, measured),
    )


def _dtype(checked: Sequence[CheckedLayer]) -> str:
    """Type of most weights, behind Q/DQ of the quantised values; float32 counts as float16, in which a 2:4 layer would run."""
    kinds = [item.quantized or item.dtype for item in checked]
    known = Counter(kind for kind in kinds if kind in PEAK_OF)
    most = known.most_common(1)[0][0] if known else None
    return "float16" if most in (None, "float32") else most


def _from_profile(profile: Path, model: Path, layers: Sequence[LayerWork]) -> ProfileBound:
    """The eligible share of the times in trtexec's exportProfile, joined to ONNX nodes by name."""
    from pipeline import tactics

    names = graph.node_names(model)
    found = [item for build in tactics.read([str(profile)], onnx_nodes=names).builds for item in build.layers]
    times = {item.name: item.profile_ms for item in found if item.profile_ms is not None}
    if not times:
        raise InputError("holds no layer times", where=str(profile), hint="trtexec --exportProfile=profile.json --dumpProfile")
    known = set(names)
    nodes = {item.name: frozenset(item.onnx_nodes or item.parts or [item.name]) & known for item in found}
    return profile_bound(times, nodes, layers, SPARSE_RATIO, str(profile))


def _notes(work: Work, checked: Sequence[CheckedLayer], bounds: Sequence[GpuBound], measured: ProfileBound | None) -> list[str]:
    notes = [
        "upper bounds, no predictions: layers are taken to reach alike shares of the peak, all other operators to cost nothing, "
        "and no layer gains more than its sparse peak over its dense one"
    ]
    if any(bound.memory_bound for bound in bounds):
        notes.append("the gain with weight traffic (packed weights at small batch) is not seen in practice")
    if any((item.quantized or item.dtype) == "float32" for item in checked):
        notes.append("float32 weights count as float16: an FP32 build lists nothing as eligible")
    if work.unknown:
        notes.append(f"left out, since their shapes are not known: {', '.join(work.unknown)}")
    if measured and measured.unmatched_ms:
        notes.append(f"{measured.unmatched_ms:.4g} ms of the profile joined no ONNX node and count as eligible")
    return notes


def _next(model: Path, bounds: Sequence[GpuBound], measured: ProfileBound | None) -> str:
    if not bounds and not measured:
        return "name a GPU whose table row has peaks of this type: --gpu, or --gpu-table with your own"
    highest = max([bound.mathematics for bound in bounds] + ([measured.at_most] if measured else []), default=1.0)
    if highest <= 1.0:
        return "2:4 cannot pay here: no layer could be eligible, or the GPU has no sparse tensor cores"
    probe = shlex.quote(model.with_suffix(".2to4.onnx").name)
    given = shlex.quote(str(model))
    return f"measure before training: sparsegate prune {given} -o {probe}, build sparse and twin on the GPU, sparsegate bench"
