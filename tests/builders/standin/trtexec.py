#!/usr/bin/env python3
"""A STAND-IN for trtexec, for tests only: no TensorRT, no GPU. It reads the real ONNX file, accepts the flags that the stated version
of trtexec accepts (and refuses others as trtexec does), prints a synthetic log in the form of 8.6, 10.3 or 11.1, and writes the
JSON files. Latencies and tactics are made up; outputs are ONNX Runtime's on the real file. Every log says `sparsegate stand-in`.

STANDIN_VERSION: 8.6.1 (v8601), 10.3.0 (the default) or 11.1.0. STANDIN_MODE: see MODES.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path += filter(None, [os.environ.get("STANDIN_SITE")])  # where tests start it without `site`, which takes half of a short run
import engine as engines

import logs

VERSION = tuple(int(part) for part in os.environ.get("STANDIN_VERSION", "10.3.0").split("."))
MODE = os.environ.get("STANDIN_MODE", "")
MODES = (
    "fails",
    "hangs",
    "killed",
    "skips",
    "no-plan",
    "silent",
    "garbage",
    "not-trtexec",
    "unstable",
    "short-times",
    "hangs-ignoring-term",
)

BUILD = {
    "onnx",
    "saveEngine",
    "skipInference",
    "device",
    "sparsity",
    "noTF32",
    "avgTiming",
    "builderOptimizationLevel",
    "memPoolSize",
    "tacticSources",
    "preview",
    "timingCacheFile",
    "noBuilderCache",
    "verbose",
    "profilingVerbosity",
    "exportLayerInfo",
    "minShapes",
    "optShapes",
    "maxShapes",
}
RUN = {
    "loadEngine",
    "device",
    "shapes",
    "loadInputs",
    "iterations",
    "duration",
    "warmUp",
    "idleTime",
    "exportTimes",
    "exportOutput",
    "exportProfile",
    "dumpProfile",
}
BEFORE_11 = {"fp16", "useCudaGraph", "useSpinWait", "noDataTransfers", "separateProfileRun"}
FROM_10 = {"errorOnTimingCacheMiss", "profile", "useProfile"}
FROM_10_4 = {"maxTactics"}
ONLY_10 = {"stronglyTyped", "bf16"}
FROM_11 = {"noCudaGraph", "noSpinWait", "includeDataTransfers"}


def known_flags() -> set[str]:
    flags = BUILD | RUN
    if VERSION < (11,):
        flags |= BEFORE_11
    if VERSION >= (10,):
        flags |= FROM_10
    if VERSION >= (10, 4):
        flags |= FROM_10_4
    if (10,) <= VERSION < (11,):
        flags |= ONLY_10
    if VERSION >= (11,):
        flags |= FROM_11
    return flags


def tag() -> str:
    major, minor, patch = VERSION
    return f"v{major}{minor}{patch:02d}" if major < 10 else f"v{major}{minor:02d}{patch:02d}"


def arguments(words: list[str]) -> list[tuple[str, str]]:
    """trtexec splits each word at its first `=`."""
    found = []
    for word in words:
        name, _, value = word.partition("=")
        if not name.startswith("--") or name[2:] not in known_flags():
            fail(f"Unknown option: {name} {value}")
        found.append((name[2:], value))
    return found


def name_values(text: str) -> dict[str, str]:
    """As trtexec: at commas, then at quotes, then at the last colon."""
    found = {}
    for part in filter(None, text.split(",")):
        quoted = part.split("'")
        if len(quoted) == 3:
            found[quoted[0] + quoted[1]] = quoted[2][1:]
        elif len(quoted) == 1:
            name, _, value = part.rpartition(":")
            found[name] = value
        else:
            fail(f"Found invalid number of 's when parsing {part}")
    return found


def shapes(text: str) -> dict[str, list[int]]:
    try:
        return {name: [int(extent) for extent in value.split("x")] for name, value in name_values(text).items()}
    except ValueError:
        fail(f"Invalid shape in {text}")
        raise AssertionError from None


def say(line: str) -> None:
    print(line, flush=True)


def fail(message: str) -> None:
    say(f"[11/30/2026-10:00:01] [E] {message}")
    say(f"&&&& FAILED TensorRT.trtexec [TensorRT {tag()}] # {' '.join(sys.argv)}")
    sys.exit(1)


def profiles(given: list[tuple[str, str]]) -> list[dict[str, dict[str, list[int]]]]:
    found: list[dict[str, dict[str, list[int]]]] = [{}]
    for name, value in given:
        if name == "profile" and int(value) > 0:
            found.append({})
        kind = {"minShapes": "min", "optShapes": "opt", "maxShapes": "max"}.get(name)
        if kind:
            for tensor, shape in shapes(value).items():
                found[-1].setdefault(tensor, {})[kind] = shape
    return [profile for profile in found if profile]


def misbehave() -> None:
    if MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "hangs-ignoring-term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE.startswith("hangs"):
        time.sleep(600)
    if MODE == "silent":
        sys.exit(3)
    if MODE == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe\x00 not a log \x1b[31m\n")
        sys.exit(1)


def build(options: dict[str, str], given: list[tuple[str, str]]) -> None:
    if "onnx" not in options or not Path(options["onnx"]).is_file():
        fail(f"Could not open file {options.get('onnx')}")
    misbehave()
    cache = Path(options["timingCacheFile"]) if "timingCacheFile" in options else None
    made = engines.build(
        Path(options["onnx"]),
        sparse=options.get("sparsity") == "enable",
        profiles=profiles(given),
        version=".".join(map(str, VERSION)),
        cache=cache,
        only_cache="errorOnTimingCacheMiss" in options,
    )
    if made.error:
        fail(made.error)
    if made.profiles and not any(-1 in shape for _, shape in made.inputs.values()):
        fail("Static model does not take explicit shapes since the shape of inference tensors will be determined by the model itself")
    if MODE == "fails":
        say("[11/30/2026-10:00:01] [E] [TRT] Error Code 10: Internal Error (Could not find any implementation for node conv1.)")
        fail("Engine could not be created from network")
    for line in logs.build_log(made, VERSION, options, skips=MODE == "skips"):
        say(line)
    if MODE != "no-plan":
        Path(options["saveEngine"]).write_bytes(made.plan())
    if "exportLayerInfo" in options:
        Path(options["exportLayerInfo"]).write_text(json.dumps(made.layer_info(detailed=options.get("profilingVerbosity") == "detailed")))
    if cache is not None:
        cache.write_text(json.dumps(made.times))


def infer(options: dict[str, str]) -> None:

    loaded = engines.load(Path(options["loadEngine"]))
    if loaded is None:
        fail("Engine deserialization failed")
        return
    misbehave()
    if "shapes" in options and not any(-1 in shape for _, shape in loaded.inputs.values()):
        fail("Static model does not take explicit shapes since the shape of inference tensors will be determined by the model itself")
    ran = loaded.shapes(shapes(options.get("shapes", "")), int(options.get("useProfile", 0)))
    if isinstance(ran, str):
        fail(ran)
        return
    feeds = loaded.feeds(name_values(options.get("loadInputs", "")), ran)
    if isinstance(feeds, str):
        fail(feeds)
        return
    rows = loaded.time(int(options.get("iterations", 10)), transfers=transfers(options))
    for line in logs.run_log(VERSION, rows, unstable=MODE == "unstable"):
        say(line)
    if "exportTimes" in options:
        warmup = rows[:2] if VERSION < (10,) else []  # older versions export the warm-up too
        kept = [*warmup, *rows]
        Path(options["exportTimes"]).write_text(json.dumps(kept[: len(kept) // 2] if MODE == "short-times" else kept))
    if "exportProfile" in options:
        Path(options["exportProfile"]).write_text(json.dumps(loaded.profile(int(options.get("iterations", 10)))))
    if "exportOutput" in options:
        Path(options["exportOutput"]).write_text(loaded.output_text(feeds, ran))


def transfers(options: dict[str, str]) -> bool:
    return "includeDataTransfers" in options if VERSION >= (11,) else "noDataTransfers" not in options


def main() -> None:
    if MODE == "not-trtexec":
        say("hello")
        sys.exit(0)
    say(f"&&&& RUNNING TensorRT.trtexec [TensorRT {tag()}]{' [b99]' if VERSION >= (10, 5) else ''} # {' '.join(sys.argv)}")
    say(f"[11/30/2026-10:00:00] [I] {logs.LABEL}")
    if "--help" in sys.argv or "-h" in sys.argv:
        say("=== Model Options ===\n  --onnx=<file>               ONNX model")
        return
    given = arguments(sys.argv[1:])
    options = dict(given)
    if MODE and not any(re.fullmatch(mode, MODE) for mode in MODES):
        fail(f"STANDIN_MODE={MODE} is unknown")
    if "loadEngine" in options:
        infer(options)
    else:
        build(options, given)
    say(f"&&&& PASSED TensorRT.trtexec [TensorRT {tag()}] # {' '.join(sys.argv)}")


if __name__ == "__main__":
    main()
