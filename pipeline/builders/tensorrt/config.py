"""Options -> IBuilderConfig, through Polygraphy's CreateConfig and, for what it has no words for, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.builders.options import TensorRTOptions
from pipeline.builders.profiles import ProfileShapes
from pipeline.builders.tensorrt.library import RTX, Library
from pipeline.builders.versions import Version, has, is_strong
from pipeline.errors import InputError, MissingPackageError, StageError

MEBIBYTE = 1 << 20


def make_config(
    builder: Any,
    trt: Any,
    library: Library,
    options: TensorRTOptions,
    version: Version,
    *,
    sparse: bool,
    precision: str,
    profiles: Sequence[ProfileShapes],
    monitor: Any = None,
) -> Any:
    """The configuration of one build.

    Raises:
        InputError: an option names what this version does not have.
        StageError: a profile is refused.
    """
    config = _polygraphy_loader(trt, library, options, version, sparse, precision, monitor)(builder, None)
    # Polygraphy's two loaders differ on TF32 (one clears it, one leaves it on): neither decides here.
    (config.set_flag if options.tf32 else config.clear_flag)(trt.BuilderFlag.TF32)
    config.avg_timing_iterations = options.averaged
    if options.max_tactics is not None:
        config.max_num_tactics = options.max_tactics
    if options.strict_nans:
        config.set_flag(trt.BuilderFlag.STRICT_NANS)
    for index, shapes in enumerate(profiles):
        _add_profile(builder, config, index, shapes)
    return config


def _polygraphy_loader(
    trt: Any, library: Library, options: TensorRTOptions, version: Version, sparse: bool, precision: str, monitor: Any
) -> Any:
    """Polygraphy's loader with every choice made explicit."""
    common: dict[str, Any] = {
        "sparse_weights": sparse,
        "profiling_verbosity": trt.ProfilingVerbosity.DETAILED,
        "builder_optimization_level": options.optimization_level,
    }
    if options.workspace_mib is not None:
        common["memory_pool_limits"] = {trt.MemoryPoolType.WORKSPACE: options.workspace_mib * MEBIBYTE}
    if options.tactic_sources is not None:
        common["tactic_sources"] = _members(trt.TacticSource, options.tactic_sources, "build.tactic_sources")
    if options.preview_features is not None:
        common["preview_features"] = _members(trt.PreviewFeature, options.preview_features, "build.preview_features")
    if monitor is not None and has("progress monitor", version):
        common["progress_monitor"] = monitor
    try:
        from polygraphy.logger import G_LOGGER

        G_LOGGER.module_severity = G_LOGGER.ERROR  # its remarks on options are answered in this file
        if library is RTX:
            from polygraphy.backend.tensorrt_rtx import CreateConfigRTX

            return CreateConfigRTX(compute_capabilities=[_capability(text) for text in options.compute_capabilities] or None, **common)
        from polygraphy.backend.trt import CreateConfig
    except ModuleNotFoundError:
        raise MissingPackageError("polygraphy", extra=library.extra, purpose=f"the {library.name} backend") from None
    weak = not is_strong(options, version)
    return CreateConfig(tf32=options.tf32, fp16=weak and precision == "fp16", bf16=weak and precision == "bf16", **common)


def _members(kind: Any, names: list[str], where: str) -> list[Any]:
    """Enum members by name: what a version lacks is refused with what it has."""
    known = kind.__members__
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"this version has no {', '.join(unknown)}", where=where, hint=f"it has {', '.join(known)}")
    return [known[name] for name in names]


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise InputError(f"not a compute capability: {text!r}", where="build.compute_capabilities", hint="write it as '8.6'")
    return int(major), int(minor)


def check_capabilities(trt: Any, options: TensorRTOptions) -> None:
    """Refuse a compute capability that TensorRT-RTX builds nothing for.

    Raises:
        InputError: with the list of those it knows.
    """
    known = [f"{name[2:-1]}.{name[-1]}" for name in trt.ComputeCapability.__members__ if name.startswith("SM")]
    unknown = [text for text in options.compute_capabilities if "{}.{}".format(*_capability(text)) not in known]
    if unknown:
        raise InputError(
            f"TensorRT-RTX builds nothing for compute capability {', '.join(unknown)}",
            where="build.compute_capabilities",
            hint=f"it knows {', '.join(known)}",
        )


def _add_profile(builder: Any, config: Any, index: int, shapes: ProfileShapes) -> None:
    profile = builder.create_optimization_profile()
    for name, ranges in shapes.items():
        profile.set_shape(name, tuple(ranges["min"]), tuple(ranges["opt"]), tuple(ranges["max"]))
    if config.add_optimization_profile(profile) < 0:
        raise StageError("TensorRT refuses the profile", where=f"build.profiles[{index}]", hint="the build log has its reason")


def flags_of(config: Any, trt: Any) -> list[str]:
    """Names of the builder flags that are set: names, since their numbers move between versions."""
    return [name for name, flag in trt.BuilderFlag.__members__.items() if config.get_flag(flag)]
