"""What a log says of the machine, the builder's options, memory, shapes and times: one row for each form of line."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from pipeline.records.tactics import Finding, Profile, Shape
from pipeline.tactics.names import split_list

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
_METRIC = re.compile(r"(min|max|mean|median|percentile\((\d+)%\)) = (\d+\.?\d*) ms")
_GROUP = re.compile(r"\{([^{}]+)\}")
_RANGE = re.compile(r"(MIN|OPT|MAX)=(\d{1,12}(?:x\d{1,12}){0,15})")
_CACHE_MODES = {"local": "local", "global": "global", "disable": "none", "disabled": "none"}
MAX_FINDINGS = 1000


class Facts(msgspec.Struct):
    """Everything of one build or run that is not about a layer's tactics."""

    machine: dict[str, str] = {}
    builder: dict[str, str] = {}
    memory: dict[str, str] = {}
    timing_cache: dict[str, str | None] = {}
    precision: list[str] = []
    typing: Literal["strong", "weak"] | None = None
    tensorrt: str | None = None
    profiles: dict[int, dict[str, Shape]] = {}
    timed_shapes: dict[str, list[int]] = {}
    performance: dict[str, float] = {}
    findings: list[Finding] = []
    dla: list[str] = []
    weights: list[str] = []
    """Weights whose conversion the lines at hand complain of."""
    heading: str = "latency"
    """What the lines `min: 0.65 ms` at hand are about."""
    lists_dla: bool = False
    """Whether the line at hand may list what runs on the DLA."""

    def take(self, text: str, source: int, line: int) -> bool:
        """Take in what a message says; False where it is none of these forms."""
        for key in (text[:1], ""):
            for form, pattern in _BY_FIRST.get(key, ()):
                if form.needle in text and (match := pattern.fullmatch(text)):
                    getattr(self, f"_{form.kind}")(form, match, source, line)
                    return True
        return False

    def profile_records(self) -> list[Profile]:
        """The optimization profiles in order."""
        return [Profile(index=index, inputs=inputs) for index, inputs in sorted(self.profiles.items())]

    def _text(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        section, _, key = form.into.partition(".")
        if not key:
            self.tensorrt = self.tensorrt or match["value"]
            return
        if "*" in key:
            key = key.replace("*", match["key"].lower().replace(" ", "_"))
        getattr(self, section)[key] = match["value"].strip()

    def _precision(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        self.precision = match["value"].split("+")

    def _typing(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        self.typing = "strong" if match["value"] == "Enabled" else "weak"

    def _cache(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        value = match["value"]
        self.timing_cache[form.into] = _CACHE_MODES.get(value.lower()) if form.into == "mode" else value

    def _profile(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        ranges = {key.lower(): _dims(value) for key, value in _RANGE.findall(match["value"])}
        self.profiles.setdefault(int(match["index"]), {})[match["name"]] = Shape(**ranges)

    def _shape(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        self.timed_shapes[match["name"]] = _dims(match["dims"])

    def _finding(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        named = match.groupdict().get("name")
        self._add(form.into, match[0], source, line, [named] if named else [])
        if "dims" in match.groupdict():
            self.timed_shapes.setdefault(match["name"], _dims(match["dims"]))

    def _number(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        self.performance[form.into] = float(match["value"])

    def _metric(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        name = match["key"].lower().replace(" time", "").replace(" ", "_").replace("-", "_")
        for word, percent, value in _METRIC.findall(match["value"]):
            self.performance[f"{name}_ms.{f'p{percent}' if percent else word}"] = float(value)

    def _weights(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        if form.into == "one":
            self.weights = [match["value"]]
        elif form.into == "begin":
            code = "fp16-overflow" if "verflow" in match["value"] or "arger than" in match["value"] else "fp16-vanish"
            self.weights = []
            self._add(code, match["value"], source, line, [])
        elif form.into == "list":
            if self.findings and self.findings[-1].code.startswith("fp16-") and not self.findings[-1].names:
                last = self.findings.pop()
                self._add(last.code, last.text, last.source, last.line, split_list(match["value"]).names)
        else:
            self._add(f"fp16-{form.into}", match["value"], source, line, list(self.weights))

    def _dla(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        if form.into == "layer":
            self.dla.append(match["value"])
        elif form.into == "list" and self.lists_dla:
            for group in _GROUP.findall(match["value"]):
                self.dla += [f"{{{group}}}", *(name.strip() for name in group.split(","))]
        self.lists_dla = form.into == "begin" or (form.into == "list" and self.lists_dla)

    def _trace(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        """The averages of the run in order: the first against the last shows drift."""
        for key, text in (("gpu", match["gpu"]), ("host", match["host"])):
            if text is not None:
                value, prefix = float(text), f"trace_{key}_ms"
                self.performance.setdefault(f"{prefix}.first", value)
                self.performance[f"{prefix}.last"] = value
                self.performance[f"{prefix}.min"] = min(value, self.performance.get(f"{prefix}.min", value))
                self.performance[f"{prefix}.max"] = max(value, self.performance.get(f"{prefix}.max", value))

    def _heading(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        self.heading = form.into

    def _old_metric(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        word = f"p{match['percent']}" if match["key"] == "percentile" else match["key"]
        self.performance[f"{self.heading}_ms.{word}"] = float(match["value"])

    def _asp(self, form: FactForm, match: re.Match[str], source: int, line: int) -> None:
        """One finding for all weights of a kind, at its first line."""
        for known in self.findings:
            if known.code == form.into:
                known.names.append(match["name"])
                return
        self._add(form.into, match[0], source, line, [match["name"]])

    def _add(self, code: str, text: str, source: int, line: int, names: list[str]) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(code=code, text=text.removeprefix("* ").strip(), source=source, line=line, names=names))


def _dims(text: str) -> list[int]:
    return [int(part) for part in text.split("x")]
