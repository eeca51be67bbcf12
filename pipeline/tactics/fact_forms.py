"""Lines that tell of the machine, the builder's options, memory, shapes and times: one row for each form."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Kind = Literal[
    "text",
    "precision",
    "typing",
    "cache",
    "shape",
    "profile",
    "finding",
    "number",
    "metric",
    "weights",
    "dla",
    "trace",
    "heading",
    "old_metric",
    "asp",
]


class FactForm(msgspec.Struct, frozen=True):
    """One form of line and where its content goes."""

    needle: str
    """Text that the message must hold."""
    pattern: str
    """Groups: `value` and `key`, or the names that the kind of fact asks for."""
    kind: Kind
    into: str
    """Section (`machine`, `builder`, `memory`) and key, or a finding's code."""


_D = r"(?P<dims>\d{1,12}(?:x\d{1,12}){0,15})"

FACT_FORMS: tuple[FactForm, ...] = (
    FactForm("Selected Device: ", r"Selected Device: (?P<value>.+)", "text", "machine.gpu"),
    FactForm("Compute Capability: ", r"Compute Capability: (?P<value>[\d.]+)", "text", "machine.compute_capability"),
    FactForm("SMs: ", r"SMs: (?P<value>\d+)", "text", "machine.sm_count"),
    FactForm("Global Memory: ", r"(?:Device )?Global Memory: (?P<value>.+)", "text", "machine.memory"),
    FactForm(
        "Clock Rate: ",
        r"(?P<key>Compute|Memory|Application Compute|Application Memory) Clock Rate: (?P<value>[\d.]+ GHz)",
        "text",
        "machine.*_clock",
    ),
    FactForm("TensorRT version: ", r"TensorRT version: (?P<value>\d+\.\d+\.\d+)", "text", "tensorrt"),
    FactForm("Precision: ", r"Precision: (?P<value>[A-Z0-9+]+)(?: \(.*)?", "precision", "precision"),
    FactForm("rongly", r"[Ss]trongly[- ]?[Tt]yped: (?P<value>Enabled|Disabled)", "typing", "typing"),
    FactForm("Timing: ", r"(?P<key>avg|min)Timing: (?P<value>\d+)", "text", "builder.*_timing"),
    FactForm("ptimization level: ", r"Builder [Oo]ptimization level: (?P<value>-?\d+)", "text", "builder.optimization_level"),
    FactForm("MaxTactics: ", r"MaxTactics: (?P<value>-?\d+)", "text", "builder.max_tactics"),
    FactForm("Memory Pools: ", r"Memory Pools: (?P<value>.+)", "text", "builder.memory_pools"),
    FactForm("aux streams", r"\[MS\] Number of aux streams is (?P<value>\d+)", "text", "builder.aux_streams"),
    FactForm("timingCacheMode: ", r"timingCacheMode: (?P<value>\w+)", "cache", "mode"),
    FactForm("iming cache", r"(?P<value>Local|Global) timing cache in use\..*", "cache", "mode"),
    FactForm("iming cache", r"Timing cache (?P<value>disabled)\..*", "cache", "mode"),
    FactForm("of timing cache from ", r"Loaded (?P<value>\d+) bytes of timing cache from .*", "cache", "loaded_bytes"),
    FactForm(
        "Memory: ",
        r"Total (?P<key>Host Persistent|Device Persistent|Scratch|Weights|Activation) Memory: (?P<value>\d+(?: bytes)?)",
        "text",
        "memory.*",
    ),
    FactForm(
        "Peak memory usage of TRT", r"Peak memory usage of TRT CPU/GPU memory allocators: (?P<value>.+)", "text", "memory.peak_allocators"
    ),
    FactForm(
        "GPU memory usage", r"Peak memory usage during Engine building and serialization: CPU: (?P<value>.+)", "text", "memory.peak_host"
    ),
    FactForm(
        "optimization profile",
        r"Set shape of input tensor (?P<name>.+) for optimization profile (?P<index>\d{1,6}) to: (?P<value>MIN=.+)",
        "profile",
        "profiles",
    ),
    FactForm("Set shape of input tensor", rf"Set shape of input tensor (?P<name>.+) to: {_D}", "shape", "timed_shapes"),
    FactForm("nput binding for ", rf"Created input binding for (?P<name>.+) with dimensions {_D}", "shape", "timed_shapes"),
    FactForm("nput binding for ", rf"Input binding for (?P<name>.+) with dimensions {_D} is created\.", "shape", "timed_shapes"),
    FactForm(
        "Automatically overriding shape",
        rf"Dynamic dimensions required for input: (?P<name>.+), but no shapes were provided\. Automatically overriding shape to: {_D}.*",
        "finding",
        "shape-overridden",
    ),
    FactForm("bound by Enqueue Time", r"\* Throughput may be bound by Enqueue Time .*", "finding", "enqueue-bound"),
    FactForm("host-to-device transfers", r"\* Throughput may be bound by host-to-device transfers .*", "finding", "transfer-bound-inputs"),
    FactForm("device-to-host transfers", r"\* Throughput may be bound by device-to-host transfers .*", "finding", "transfer-bound-outputs"),
    FactForm("time is unstable", r"\* GPU compute time is unstable, with coefficient of variance = .*", "finding", "unstable"),
    FactForm(
        "across different models of devices",
        r"Using an engine plan file across different models of devices .*",
        "finding",
        "plan-of-another-gpu",
    ),
    FactForm(
        "sufficient workspace memory", r"Some tactics do not have sufficient workspace memory to run\..*", "finding", "workspace-short"
    ),
    FactForm("falling back to GPU", r".*\bfalling back to GPU.*", "finding", "dla-fallback"),
    FactForm("sparsity=force pruned", r"--sparsity=force pruned \d+ weights to be sparsity pattern\.?", "finding", "sparsity-forced"),
    FactForm(
        "multiple dynamic values", r"Myelin graph with multiple dynamic values may have poor performance.*", "finding", "myelin-dynamic"
    ),
    FactForm("Throughput: ", r"Throughput: (?P<value>\d+\.?\d*) qps", "number", "throughput_qps"),
    FactForm("Total Host Walltime: ", r"Total Host Walltime: (?P<value>\d+\.?\d*) s", "number", "host_walltime_s"),
    FactForm("Total GPU Compute Time: ", r"Total GPU Compute Time: (?P<value>\d+\.?\d*) s", "number", "gpu_compute_s"),
    FactForm(
        ": min = ",
        r"(?P<key>Latency|End-to-End Host Latency|Enqueue Time|H2D Latency|GPU Compute Time|D2H Latency): (?P<value>min = .*)",
        "metric",
        "performance",
    ),
    FactForm(
        "Average on ",
        r"Average on \d+ runs - GPU latency: (?P<gpu>\d+\.?\d*) ms(?: - Host latency: (?P<host>\d+\.?\d*) ms)?.*",
        "trace",
        "performance",
    ),
    # trtexec 7.x prints its summary a line a number
    FactForm("Host Latency", r"(?P<value>Host Latency)", "heading", "latency"),
    FactForm("Enqueue Time", r"(?P<value>Enqueue Time)", "heading", "enqueue"),
    FactForm("GPU Compute", r"(?P<value>GPU Compute)", "heading", "gpu_compute"),
    FactForm(" ms", r"(?P<key>min|max|mean|median): (?P<value>\d+\.?\d*) ms(?: \(.*\))?", "old_metric", "performance"),
    FactForm(" ms at ", r"(?P<key>percentile): (?P<value>\d+\.?\d*) ms at (?P<percent>\d{1,2})%(?: \(.*\))?", "old_metric", "performance"),
    FactForm("weights are affected by this issue", r"\s*- \d+ weights are affected by this issue: (?P<value>.*)", "weights", "begin"),
    FactForm("List of affected weights: ", r"List of affected weights: (?P<value>.*)", "weights", "list"),
    FactForm(
        "had the following issues", r"Weights \[name=(?P<value>.*)\] had the following issues when converted to FP16:", "weights", "one"
    ),
    FactForm("ubnormal FP16", r"\s*-? ?(?P<value>Subnormal FP16 values detected.*|.*[Ss]ubnormal FP16.*)", "weights", "vanish"),
    FactForm("Values less than smallest", r"\s*- (?P<value>Values less than smallest positive FP16 .*)", "weights", "vanish"),
    FactForm("arger than", r"\s*- (?P<value>.*[Ll]arger than (?:greatest|largest).*FP16.*)", "weights", "overflow"),
    FactForm("verflow", r"\s*- (?P<value>.*[Oo]verflow.*)", "weights", "overflow"),
    FactForm("unning on DLA", r"-+ ?Layers [Rr]unning on DLA ?(?:-+|: ?)", "dla", "begin"),
    FactForm("unning on GPU", r"-+ ?Layers [Rr]unning on GPU ?(?:-+|: ?)", "dla", "end"),
    FactForm("}", r"(?P<value>(?:\{[^{}]+\},? ?)+)", "dla", "list"),
    FactForm("[DlaLayer] ", r"\[DlaLayer\] (?P<value>.+)", "dla", "layer"),
    # apex ASP, in a training log
    FactForm("[ASP] ", r"\[ASP\] Enabled \d+\.?\d*% sparsity for (?P<name>\S+) of size=.*", "asp", "asp-pruned"),
    FactForm("[ASP] ", r"\[ASP\] Auto skipping pruning (?P<name>\S+) of size=.*", "asp", "asp-skipped"),
)
"""Tried in this order among the rows whose needle is in the message."""

_VARIES = ".(\\"
_BY_FIRST: dict[str, list[tuple[FactForm, re.Pattern[str]]]] = {}
for _form in FACT_FORMS:
    _first = _form.pattern.removeprefix("\\")[:1] if not _form.pattern.startswith(("\\s", "\\-")) else "."
    _BY_FIRST.setdefault("" if _first in _VARIES else _first, []).append((_form, re.compile(_form.pattern)))


def find_fact(text: str) -> tuple[FactForm, re.Match[str]] | None:
    """The first form that a message is of."""
    for key in (text[:1], ""):
        for form, pattern in _BY_FIRST.get(key, ()):
            if form.needle in text and (match := pattern.fullmatch(text)):
                return form, match
    return None
