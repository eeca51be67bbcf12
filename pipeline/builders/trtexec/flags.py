"""trtexec's flags by meaning and version: what was a flag before 11 is a default there, and only its negation is a flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.builders.options import TensorRTOptions
from pipeline.builders.profiles import KINDS, ProfileShapes
from pipeline.builders.versions import OLDEST, Version, is_strong, require
from pipeline.errors import InputError


class Flag(msgspec.Struct, frozen=True):
    """How one meaning is said in a range of versions; `text` None: it is the default there and nothing is said."""

    meaning: str
    text: str | None
    since: Version = OLDEST
    until: Version | None = None


V10, V11 = (10, 0), (11, 0)
FLAGS: tuple[Flag, ...] = (
    Flag("model", "--onnx={}"),
    Flag("save plan", "--saveEngine={}"),
    Flag("load plan", "--loadEngine={}"),
    Flag("build only", "--skipInference"),
    Flag("device", "--device={}"),
    Flag("sparse weights", "--sparsity=enable"),
    Flag("no sparse weights", "--sparsity=disable"),
    Flag("fp32", None),
    Flag("fp16", "--fp16", until=V11),
    Flag("bf16", "--bf16", since=V10, until=V11),
    Flag("strong typing", "--stronglyTyped", since=V10, until=V11),
    Flag("strong typing", None, since=V11),
    Flag("tf32", None),
    Flag("no tf32", "--noTF32"),
    Flag("average timings", "--avgTiming={}"),
    Flag("optimization level", "--builderOptimizationLevel={}"),
    Flag("workspace MiB", "--memPoolSize=workspace:{}"),
    Flag("max tactics", "--maxTactics={}", since=(10, 4)),
    Flag("tactic sources", "--tacticSources={}"),
    Flag("preview features", "--preview={}"),
    Flag("timing cache", "--timingCacheFile={}"),
    Flag("no timing cache", "--noBuilderCache"),
    Flag("error on cache miss", "--errorOnTimingCacheMiss", since=V10),
    Flag("verbose", "--verbose"),
    Flag("detailed layers", "--profilingVerbosity=detailed"),
    Flag("layer information", "--exportLayerInfo={}"),
    Flag("profile number", "--profile={}", since=(9, 0)),
    Flag("min shapes", "--minShapes={}"),
    Flag("opt shapes", "--optShapes={}"),
    Flag("max shapes", "--maxShapes={}"),
    Flag("use profile", "--useProfile={}", since=(9, 0)),
    Flag("shapes", "--shapes={}"),
    Flag("inputs", "--loadInputs={}"),
    Flag("iterations", "--iterations={}"),
    Flag("least seconds", "--duration={}"),
    Flag("warm-up ms", "--warmUp={}"),
    Flag("no pauses", "--idleTime=0"),
    Flag("times", "--exportTimes={}"),
    Flag("outputs", "--exportOutput={}"),
    Flag("layer times", "--exportProfile={}"),
    Flag("profile layers", "--dumpProfile"),
    Flag("profile in a run apart", "--separateProfileRun", until=V11),
    Flag("profile in a run apart", None, since=V11),
    Flag("cuda graph", "--useCudaGraph", until=V11),
    Flag("cuda graph", None, since=V11),
    Flag("no cuda graph", None, until=V11),
    Flag("no cuda graph", "--noCudaGraph", since=V11),
    Flag("spin wait", "--useSpinWait", until=V11),
    Flag("spin wait", None, since=V11),
    Flag("no spin wait", None, until=V11),
    Flag("no spin wait", "--noSpinWait", since=V11),
    Flag("transfers", None, until=V11),
    Flag("transfers", "--includeDataTransfers", since=V11),
    Flag("no transfers", "--noDataTransfers", until=V11),
    Flag("no transfers", None, since=V11),
)
JIT = ("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS")
TACTIC_SOURCES: dict[Version, dict[str, str]] = {
    (8, 6): {name: name for name in ("CUBLAS", "CUBLAS_LT", "CUDNN", *JIT)},
    (11, 0): {name: name for name in JIT},
}
"""Since a version: what --tacticSources turns on and off."""
PREVIEW_FEATURES: dict[Version, dict[str, str]] = {
    (8, 6): {
        "PROFILE_SHARING_0806": "profileSharing0806",
        "FASTER_DYNAMIC_SHAPES_0805": "fasterDynamicShapes0805",
        "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805": "disableExternalTacticSourcesForCore0805",
    },
    (10, 0): {"PROFILE_SHARING_0806": "profileSharing0806"},
    (10, 3): {"ALIASED_PLUGIN_IO_10_03": "aliasedPluginIO1003"},
    (10, 10): {"ALIASED_PLUGIN_IO_10_03": "aliasedPluginIO1003", "RUNTIME_ACTIVATION_RESIZE_10_10": "runtimeActivationResize"},
}
"""Since a version: TensorRT's name of a preview feature -> trtexec's."""


def say(meaning: str, version: Version, *values: object) -> list[str]:
    """The flag for a meaning in `version`; empty where it is the default.

    Raises:
        InputError: this version has no way to say it.
    """
    rows = [row for row in FLAGS if row.meaning == meaning]
    for row in rows:
        if version >= row.since and (row.until is None or version < row.until):
            return [] if row.text is None else [row.text.format(*values)]
    words = next(row.text for row in rows if row.text)
    raise InputError(
        f"trtexec {'.'.join(map(str, version))} cannot be told: {meaning}",
        where="build",
        hint=f"{words.partition('=')[0]} is of another version",
    )


def switch(on: bool, meaning: str, version: Version) -> list[str]:
    """The flag for `meaning` or for `no meaning`."""
    return say(meaning if on else f"no {meaning}", version)


def build_flags(
    options: TensorRTOptions, version: Version, *, sparse: bool, precision: str, profiles: Sequence[ProfileShapes]
) -> list[str]:
    """Everything about a build but its files.

    Raises:
        InputError: what this version of trtexec cannot be told.
    """
    if options.strict_nans:
        raise InputError("trtexec has no flag for STRICT_NANS", where="build.strict_nans", hint="use the tensorrt backend")
    strong = is_strong(options, version)
    flags = [
        *say("build only", version),
        *say("device", version, options.device),
        *switch(sparse, "sparse weights", version),
        *(say("strong typing", version) if strong else say(precision, version)),
        *switch(options.tf32, "tf32", version),
        *say("average timings", version, options.averaged),
        *say("optimization level", version, options.optimization_level),
        *say("detailed layers", version),
    ]
    if options.logs_verbose:
        flags += say("verbose", version)
    if options.workspace_mib is not None:
        flags += say("workspace MiB", version, options.workspace_mib)
    if options.max_tactics is not None:
        flags += say("max tactics", version, options.max_tactics)
    if options.tactic_sources is not None:
        flags += say("tactic sources", version, _signed(options.tactic_sources, _latest(TACTIC_SOURCES, version), "build.tactic_sources"))
    if options.preview_features is not None:
        names = _latest(PREVIEW_FEATURES, version)
        wanted = _known(options.preview_features, names, "build.preview_features")
        flags += say("preview features", version, ",".join(("+" if name in wanted else "-") + names[name] for name in names))
    return flags + _profile_flags(profiles, version)


def _profile_flags(profiles: Sequence[ProfileShapes], version: Version) -> list[str]:
    if len(profiles) > 1:
        require("several profiles in trtexec", version, where="build.profiles")
    flags = []
    for index, profile in enumerate(profiles):
        if len(profiles) > 1:
            flags += say("profile number", version, index)
        for kind in KINDS:  # trtexec takes the three that directly follow --profile
            flags += say(f"{kind} shapes", version, pairs({name: dims(shapes[kind]) for name, shapes in profile.items()}))
    return flags


def _latest(table: Mapping[Version, dict[str, str]], version: Version) -> dict[str, str]:
    """The row in force."""
    return table[max(since for since in table if since <= version)]


def _known(wanted: Sequence[str], names: Mapping[str, str], where: str) -> set[str]:
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        raise InputError(f"this version has no {', '.join(unknown)}", where=where, hint=f"it has {', '.join(names)}")
    return set(wanted)


def _signed(wanted: Sequence[str], names: Mapping[str, str], where: str) -> str:
    """`+A,-B`: the wanted ones on, all others off."""
    chosen = _known(wanted, names, where)
    return ",".join(("+" if name in chosen else "-") + name for name in names)


def dims(shape: Sequence[int]) -> str:
    """A shape as trtexec reads it."""
    return "x".join(str(extent) for extent in shape)


def pairs(values: Mapping[str, str]) -> str:
    """`name:value,...` as trtexec splits it: at commas first, then at quotes, then at the last colon.

    Raises:
        InputError: a name or value that trtexec would split.
    """
    return ",".join(f"{_quoted(name)}:{_whole(value)}" for name, value in values.items())


def _quoted(name: str) -> str:
    """A name with `:` stands in trtexec's own quotes; there is no way to write one with `,` or `'`."""
    if "," in name or "'" in name or not name:
        raise InputError(
            f"trtexec cannot be told the input name {name!r}", where="ONNX inputs", hint="rename it (it must hold neither , nor ')"
        )
    return f"'{name}'" if ":" in name else name


def _whole(value: str) -> str:
    if "," in value or "'" in value or ":" in value:
        raise InputError(
            f"trtexec would split the path {value!r}", where="build.remote_folder", hint="use a folder whose path holds no , ' or :"
        )
    return value
