"""Network -> serialized plan: the one path of TensorRT and TensorRT-RTX, run inside the building process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline import machine
from pipeline.builders import profiles, versions
from pipeline.builders.tensorrt import cache, config, layer_info, network
from pipeline.builders.tensorrt.library import LIBRARIES, Library, api_version, load
from pipeline.builders.tensorrt.logger import LogFile, process_logger
from pipeline.builders.tensorrt.monitor import Report, make_monitor
from pipeline.builders.tensorrt.request import PlanRequest, PlanResult
from pipeline.errors import StageError

NODE_IN_MESSAGE = tuple(
    re.compile(pattern)
    for pattern in (
        r"for node (\{ForeignNode\[.*?\]\}|\S.*?)(?: due to|\.$|$| with| \[)",
        r"Cannot compile operation '([^']+)'",
        r"Error Code \d+: .*?\((?:Unnamed Layer\* \d+ )?([^():]+): ",
        r"(?:layer|Layer|node|Node) '?([\w./:\[\]\-+ ]+?)'?(?:[:,]|$| has| is)",
    )
)
"""Where TensorRT's error messages name the node, most telling first."""


def build_plan(request: PlanRequest, log: LogFile, report: Report, stopped: Callable[[], bool]) -> PlanResult:
    """Build one plan and write it, its layer info and its timing cache beside the log.

    Raises:
        SparsegateError: what the version cannot do, a model that does not parse, or a build that ends without a plan.
    """
    library = LIBRARIES[request.library]
    trt = load(library)
    version = api_version(library, trt)
    versions.check(request.options, request.precision, version)
    if library.compute_capabilities:
        config.check_capabilities(trt, request.options)
    started = time.perf_counter()
    environment = environment_of(library, trt, request)
    _say_what_is_built(log, library, request, environment)
    built = serialize(trt, library, version, request, log, report, stopped)
    seconds = time.perf_counter() - started
    log.own(f"Engine built in {seconds:.3f} sec.")
    Path(request.path(".plan")).write_bytes(built["plan"])
    notes = list(built["notes"])
    if library.deserializes:
        notes += layer_info.write(trt, process_logger(trt, log), Path(request.path(".plan")), Path(request.path(".layers.json")))
    if request.options.cache_mode == "replay" and (source := cache.source_of(request.options, request.stem)):
        notes.append(cache.compare_tactics(source.with_name(f"{request.stem}.layers.json"), Path(request.path(".layers.json"))))
    return PlanResult(
        seconds=seconds,
        tensorrt=str(trt.__version__),
        flags=built["flags"],
        network_flags=built["network_flags"],
        environment=environment,
        cache_before=built["cache_before"],
        cache_after=built["cache_after"],
        notes=notes,
    )


def serialize(
    trt: Any, library: Library, version: versions.Version, request: PlanRequest, log: LogFile, report: Report, stopped: Callable[[], bool]
) -> dict[str, Any]:
    """The path itself: builder, network, profiles, configuration, serialized bytes.

    Returns:
        `plan` (bytes), `flags`, `network_flags` (names), `cache_before`, `cache_after` (sha256 or empty), `notes`.
    """
    logger = process_logger(trt, log)
    builder = trt.Builder(logger)
    flags = network.network_flags(request.options, version, trt)
    net, parser = network.parse(builder, trt, logger, Path(request.onnx), flags)
    profiles.check_profiles(request.profiles, network.inputs_of(net))
    monitor = make_monitor(trt, report, stopped) if versions.has("progress monitor", version) else None
    made = config.make_config(
        builder,
        trt,
        library,
        request.options,
        version,
        sparse=request.sparse,
        precision=request.options.allowed(request.precision),
        profiles=request.profiles,
        monitor=monitor,
    )
    before = _attach_cache(made, trt, library, version, request)
    set_flags = config.flags_of(made, trt)
    log.own(f"Builder flags: {', '.join(set_flags) or 'none'}; network flags: {', '.join(flags) or 'none'}")
    plan = builder.build_serialized_network(net, made)
    del parser  # kept until here: it owns the weights that the network points to
    if plan is None:
        raise no_plan(log, stopped())
    data = bytes(plan)
    notes = [] if versions.has("error on cache miss", version) or request.options.cache_mode != "replay" else [cache.NO_MISS_ERROR]
    return {
        "plan": data,
        "flags": set_flags,
        "network_flags": flags,
        "cache_before": before,
        "cache_after": _save_cache(made, library, request),
        "notes": notes,
    }


def no_plan(log: LogFile, stopped: bool) -> StageError:
    """The error of a build that returned None: TensorRT's own last errors, and the node that they name."""
    if stopped:
        return StageError("the build was stopped", where=str(log.path))
    text = "; ".join(log.errors[-3:]) or "TensorRT gives no reason"
    node = next((found.group(1) for message in reversed(log.errors) for form in NODE_IN_MESSAGE if (found := form.search(message))), None)
    about = f" (node {node})" if node else ""
    return StageError(
        f"TensorRT built no engine{about}: {text}", where=str(log.path), hint="read the log; build.preset: diagnose logs every tactic"
    )


def _attach_cache(made: Any, trt: Any, library: Library, version: versions.Version, request: PlanRequest) -> str:
    if not library.timing_cache:
        return ""
    source = cache.source_of(request.options, request.stem)
    data = source.read_bytes() if source else b""
    cache.attach(made, trt, request.options, version, data)
    return cache.digest(data) if data else ""


def _save_cache(made: Any, library: Library, request: PlanRequest) -> str:
    """Write a recorded cache; a replayed one is only read."""
    if not library.timing_cache or request.options.cache_mode != "record":
        return ""
    held = made.get_timing_cache()
    if held is None:
        return ""
    data = bytes(held.serialize())
    Path(request.path(".cache")).write_bytes(data)
    return cache.digest(data)


def environment_of(library: Library, trt: Any, request: PlanRequest) -> dict[str, str]:
    """What the plan depends on, besides the model and the options."""
    if library.compute_capabilities:
        targets = ", ".join(request.options.compute_capabilities) or "all"
        return {library.name: str(trt.__version__), "compute_capabilities": targets}
    return {library.name: str(trt.__version__), **machine.gpu_facts(request.options.device)}


def _say_what_is_built(log: LogFile, library: Library, request: PlanRequest, environment: dict[str, str]) -> None:
    """The facts that a reader of the log needs, in the words that trtexec uses for them."""
    log.own(f"{'TensorRT' if library.deserializes else 'TensorRT-RTX'} version: {environment[library.name]}")
    if "gpu" in environment:
        log.own(f"Selected Device: {environment['gpu']}")
        log.own(f"Compute Capability: {environment['compute_capability']}")
    log.own(f"Sparsity: {'Enabled' if request.sparse else 'Disabled'}")
    log.own(f"Precision of the file: {request.precision}")
    log.own(f"avgTiming: {request.options.averaged}")
    log.own(f"Builder optimization level: {request.options.optimization_level}")
    log.own(f"Timing cache: {request.options.cache_mode if library.timing_cache else 'none'}")
    for index, shapes in enumerate(request.profiles):
        for name, ranges in shapes.items():
            text = " ".join(f"{kind.upper()}={'x'.join(map(str, ranges[kind]))}" for kind in profiles.KINDS)
            log.own(f"Set shape of input tensor {name} for optimization profile {index} to: {text}")
