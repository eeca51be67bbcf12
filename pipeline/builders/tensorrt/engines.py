"""A finished build as an Engine record."""

from __future__ import annotations

from pathlib import Path

from pipeline.builders import profiles
from pipeline.builders.artifacts import clear, engine_stem
from pipeline.builders.base import ArmRequest
from pipeline.builders.model_io import dynamic_inputs, input_types, inputs_of
from pipeline.builders.options import TensorRTOptions
from pipeline.builders.tensorrt.library import Library
from pipeline.builders.tensorrt.parent import build_in_child
from pipeline.builders.tensorrt.request import PlanRequest, PlanResult
from pipeline.progress import Progress
from pipeline.records.artifact import Artifact
from pipeline.records.engines import Engine


def build_engine(library: Library, request: ArmRequest, options: TensorRTOptions, folder: Path, progress: Progress) -> Engine:
    """Check the profiles against the file, build in a child process, and record what came of it.

    Raises:
        InputError: profiles or options that cannot be followed.
        StageError: the build ended without a plan.
    """
    profiles.check_profiles(request.profiles, inputs_of(request.onnx))
    folder.mkdir(parents=True, exist_ok=True)
    clear(folder, engine_stem(request))
    plan = PlanRequest(
        library=library.name,
        onnx=str(request.onnx.resolve()),
        stem=engine_stem(request),
        folder=str(folder.resolve()),
        sparse=request.sparse_weights,
        precision=request.precision,
        profiles=request.profiles,
        options=options,
    )
    result = build_in_child(plan, progress)
    return Engine(
        arm=request.arm,
        repeat=request.repeat,
        onnx_arm=request.onnx_arm,
        plan=Artifact.of(folder / f"{plan.stem}.plan", relative_to=folder),
        log=_artifact(folder, f"{plan.stem}.log"),
        layer_info=_artifact(folder, f"{plan.stem}.layers.json"),
        timing_cache=_artifact(folder, f"{plan.stem}.cache"),
        options=recorded(library, options, request, result),
        built_with=result.environment,
        notes=result.notes,
        profiles=request.profiles,
        inputs=input_types(request.onnx),
        dynamic_inputs=dynamic_inputs(request.onnx),
        seconds=result.seconds,
    )


def _artifact(folder: Path, name: str) -> Artifact | None:
    return Artifact.of(folder / name, relative_to=folder) if (folder / name).is_file() else None


def recorded_options(options: TensorRTOptions, request: ArmRequest) -> dict[str, str | int | float | bool | list[str]]:
    """Every meaning that shapes a plan, by name; what is left to TensorRT's default is absent."""
    kept = {name: value for name in SHAPING if (value := getattr(options, name)) not in (None, [])}
    return {
        **kept,
        "sparse_weights": request.sparse_weights,
        "precision": options.allowed(request.precision),
        "avg_timing": options.averaged,
    }


def recorded(
    library: Library, options: TensorRTOptions, request: ArmRequest, result: PlanResult
) -> dict[str, str | int | float | bool | list[str]]:
    """The options with what the building process says it set."""
    return {
        **recorded_options(options, request),
        "timing_cache": options.cache_mode if library.timing_cache else "none",
        "builder_flags": result.flags,
        "network_flags": result.network_flags,
        **({"timing_cache_sha256_before": result.cache_before} if result.cache_before else {}),
        **({"timing_cache_sha256_after": result.cache_after} if result.cache_after else {}),
    }


SHAPING = (
    "preset",
    "typing",
    "tf32",
    "strict_nans",
    "optimization_level",
    "workspace_mib",
    "max_tactics",
    "tactic_sources",
    "preview_features",
    "compute_capabilities",
)
