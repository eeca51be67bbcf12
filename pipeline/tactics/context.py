"""What a build's options say of it, and what would tell more where its log says little."""

from __future__ import annotations

from typing import Literal

from pipeline.records.tactics import Build, LoadedRun
from pipeline.tactics.builds import BuildLog
from pipeline.tactics.names import profile_of
from pipeline.tactics.sparsity import Listed

PRECISION_FLAGS = {"--fp16": "FP16", "--bf16": "BF16", "--int8": "INT8", "--fp8": "FP8", "--int4": "INT4"}
BEST = ["FP32", "FP16", "BF16", "INT8"]
HALF = "export the model in half precision"
FILTERED = "TensorRT's messages are missing though --verbose was given: keep all of the build's output (2>&1)"
KERNELS = "--profilingVerbosity=detailed --exportLayerInfo=FILE names the kernels"
STRONG_ONLY_FROM = 11
"""From this major version on every network is strongly typed."""


def _flags(log: BuildLog) -> set[str]:
    return {word.partition("=")[0] for word in (log.command or "").split()}


def typing_of(log: BuildLog) -> Literal["strong", "weak"] | None:
    """Strong or weak typing: as printed, by the command, or by the version."""
    if log.facts.typing:
        return log.facts.typing
    if "--stronglyTyped" in _flags(log):
        return "strong"
    version = log.tensorrt or log.facts.tensorrt
    if version and int(version.partition(".")[0]) >= STRONG_ONLY_FROM:
        return "strong"
    return "weak" if _flags(log) & {*PRECISION_FLAGS, "--best"} else None


def precision(log: BuildLog) -> list[str]:
    """The precisions that the builder may use: as printed, else by the command's flags."""
    if log.facts.precision:
        return log.facts.precision
    flags = _flags(log)
    if "--best" in flags:
        return BEST
    allowed = [name for flag, name in PRECISION_FLAGS.items() if flag in flags]
    return ["FP32", *allowed] if allowed else []


def hint(build: Build, log: BuildLog) -> str | None:
    """What would tell more; None where the log says enough."""
    if build.passes and not build.layers and build.precision == ["FP32"]:
        return f"FP32-only build: no layer is eligible; {HALF if build.typing == 'strong' else f'build with --fp16, or {HALF}'}"
    if log.source in log.joined and not log.layer_info:
        return "a profile says nothing of tactics: give the build's log, or its layer info, too"
    if log.conflicts:
        return "several runs wrote into this file at once: give each of them a file of its own"
    if log.lists or log.layer_info or log.dump or log.tables.began:
        untimed = not log.tables.began and build.eligible and set(build.eligible) != set(build.selected)
        return _what_decided(log) if untimed else None
    if build.sparsity == "disabled":
        return "sparsity was off: build with --sparsity=enable (BuilderFlag.SPARSE_WEIGHTS)"
    if log.info and build.sparsity is not None:
        return f"sparsity was {build.sparsity}, but no line about it is here: the log was cut or filtered; keep all of the build's output"
    if log.info:
        return "TensorRT's INFO messages are there, but none about sparsity: the builder flag was off; build with --sparsity=enable"
    if "--verbose" in _flags(log):
        return FILTERED
    return "the log hides TensorRT's INFO messages: build with --verbose, or set the logger's severity to INFO or VERBOSE"


def _what_decided(log: BuildLog) -> str | None:
    """What is missing to see why layers were not selected: the times, where the log hides them, and the kernels' names."""
    if log.verbose:
        steps = ["no tactic was timed in this build, a timing cache may have answered: build once with an empty one"]
    elif "--verbose" in _flags(log):
        steps = [FILTERED]
    else:
        steps = ["the times that decided are printed only at VERBOSE: build with --verbose"]
    if not any(layer.tactic_name for layer in (*log.layer_info, *log.dump)):
        steps.append(KERNELS)
    return "; ".join(steps)


def profiles_of(log: BuildLog, lists: list[Listed]) -> int:
    """How many optimization profiles the log shows: in the options, or as suffixes of names."""
    suffixes = {index for listed in lists for name in listed.names if (index := profile_of(name)[1]) is not None}
    suffixes |= {index for name in log.tables.layers.names if (index := profile_of(name)[1]) is not None}
    return max(len(log.facts.profiles), max(suffixes, default=0) + 1)


def loaded_run(log: BuildLog) -> LoadedRun:
    """A run that loaded a plan: its figures, and no word about sparsity."""
    seen = log.facts
    return LoadedRun(
        source=log.source,
        line=log.command_line,
        command=log.command or "",
        tensorrt=log.tensorrt or seen.tensorrt,
        machine=seen.machine,
        findings=seen.findings,
        timed_shapes=seen.timed_shapes,
        performance=seen.performance,
    )
