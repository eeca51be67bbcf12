"""What a log says of the machine, the builder's options, memory, shapes and times."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from pipeline.records.tactics import Finding, Profile, Shape
from pipeline.tactics.fact_forms import FactForm, find_fact
from pipeline.tactics.names import split_list

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
        found = find_fact(text)
        if found is None:
            return False
        form, match = found
        getattr(self, f"_{form.kind}")(form, match, source, line)
        return True

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
