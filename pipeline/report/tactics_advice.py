"""What to look at next in a tactic report: only what its sources do not hold yet, and what was not done already."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable

import msgspec

from pipeline import codes
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer


class Known(msgspec.Struct, frozen=True):
    """What a build's sources hold, and how it was made."""

    verbose: bool
    layer_info: bool
    """Layer info that names tactics was read."""
    profile: bool
    strong: bool
    flags: frozenset[str]
    """Options of the command, without their values."""

    @classmethod
    def of(cls, build: Build) -> Known:
        """Of one build."""
        return cls(
            verbose=build.log_level_seen == "verbose",
            layer_info=any(layer.tactic is not None and layer.tactic.how == "layer-info" for layer in build.layers),
            profile=any(layer.profile_ms is not None for layer in build.layers),
            strong=build.typing == "strong",
            flags=frozenset(word.partition("=")[0] for word in (build.command or "").split()),
        )


def _always(_: Known) -> bool:
    return True


def _without(*flags: str) -> Callable[[Known], bool]:
    return lambda known: not known.flags & set(flags)


class Step(msgspec.Struct, frozen=True):
    """One piece of advice, and when it says something new."""

    text: str
    new: Callable[[Known], bool] = _always


NO_CACHE = _without("--noBuilderCache")
STEPS: dict[str, tuple[Step, ...]] = {
    "repeat-of": (Step("read the earlier layer's times"), Step("or build once without timing cache (--noBuilderCache)", NO_CACHE)),
    "timed-from-cache": (
        Step("build once with an empty timing cache", lambda known: known.verbose),
        Step("build once with an empty timing cache and --verbose", lambda known: not known.verbose),
    ),
    "names-unknown": (
        Step(
            "export layer info with --profilingVerbosity=detailed --exportLayerInfo=FILE and read it together with the log",
            lambda known: not known.layer_info,
        ),
        Step("the layer info that was read does not tell either: this TensorRT may not name them", lambda known: known.layer_info),
    ),
    "sources-disagree": (
        Step("see the conflicts"),
        Step("layer info with --profilingVerbosity=detailed decides", lambda known: not known.layer_info),
        Step("see that log and layer info are of one build", lambda known: known.layer_info),
    ),
    "fp32-only-build": (
        Step("build with --fp16", lambda known: not known.strong),
        Step("export the model in half precision for a strongly typed build"),
    ),
    "myelin-region": (
        Step("layer info of TensorRT 10 names the region's kernels", lambda known: not known.layer_info),
        Step("a profile shows its time", lambda known: not known.profile),
    ),
    "enqueue-bound": (
        Step("time with --useCudaGraph", _without("--useCudaGraph")),
        Step("time larger batches: a CUDA graph was used already", lambda known: "--useCudaGraph" in known.flags),
    ),
    "transfer-bound-inputs": (Step("time with --noDataTransfers", _without("--noDataTransfers")),),
    "transfer-bound-outputs": (Step("time with --noDataTransfers", _without("--noDataTransfers")),),
    "unstable": (
        Step("lock the GPU's clocks"),
        Step("use --useSpinWait", _without("--useSpinWait")),
        Step("time longer (--duration)"),
    ),
}
"""Where a code's next step has parts that may be done already: those parts. All other codes have the one step of `codes`."""


def advice(build: Build, layers: Iterable[TacticLayer]) -> list[str]:
    """The build's own hint, then a next step for every reason and finding that has a new one.

    Args:
        build: One build.
        layers: Those whose reasons count.
    """
    known = Known.of(build)
    found = dict.fromkeys(reason.code for layer in layers if layer.selected is not Rung.YES for reason in layer.reasons)
    found.update(dict.fromkeys(finding.code for finding in build.findings))
    steps = [(code, _step(code, known)) for code in found]
    model = _model(build)
    texts = [f"{code}: {step.replace('MODEL.onnx', model)}" for code, step in steps if step]
    return [*([build.hint] if build.hint else []), *texts]


def _step(code: str, known: Known) -> str:
    if code not in STEPS:
        return codes.get(code).next
    return ", ".join(step.text for step in STEPS[code] if step.new(known))


def _model(build: Build) -> str:
    """The model that the build's command names."""
    named = (word.partition("=")[2] for word in (build.command or "").split() if word.startswith("--onnx="))
    return next((shlex.quote(path) for path in named if path), "MODEL.onnx")
