"""Timing caches: off, recorded, or replayed read-only, and whether a replay chose the same tactics."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pipeline.builders.options import TensorRTOptions
from pipeline.builders.versions import Version, has
from pipeline.errors import InputError, StageError

NO_MISS_ERROR = "this version cannot fail on a timing-cache miss: a tactic that the cache lacks was timed anew without a word"
RECORD_FIRST = "give the folder of a build made with timing_cache: record"


def source_of(options: TensorRTOptions, stem: str) -> Path | None:
    """The cache that this build starts from.

    Raises:
        InputError: a replay whose cache is not there.
    """
    if options.cache_mode == "off" or options.timing_cache_from is None:
        return None
    path = Path(options.timing_cache_from) / f"{stem}.cache"
    if path.is_file():
        return path
    if options.cache_mode == "replay":
        raise InputError("no timing cache to replay", where=str(path), hint=RECORD_FIRST)
    return None


def attach(config: Any, trt: Any, options: TensorRTOptions, version: Version, data: bytes) -> None:
    """Give the build its cache, or none.

    Raises:
        StageError: the cache is of another TensorRT version or GPU.
    """
    if options.cache_mode == "off":
        config.set_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)
        return
    if not config.set_timing_cache(config.create_timing_cache(data), False):
        raise StageError(
            "the timing cache is of another TensorRT version or GPU",
            where="build.timing_cache_from",
            hint="record a new one on this machine",
        )
    if options.cache_mode == "replay" and has("error on cache miss", version):
        config.set_flag(trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)


def digest(data: bytes) -> str:
    """sha256 of a cache's bytes."""
    return hashlib.sha256(data).hexdigest()


def recorded_digest(options: TensorRTOptions) -> dict[str, str]:
    """What a build that starts from recorded caches depends on: `timing_caches` -> sha256 over their names and bytes.

    Raises:
        InputError: a replay of a folder that holds none.
    """
    if options.cache_mode == "off" or options.timing_cache_from is None:
        return {}
    files = sorted(Path(options.timing_cache_from).glob("*.cache"))
    if options.cache_mode == "replay" and not files:
        raise InputError("no timing cache to replay", where=options.timing_cache_from, hint=RECORD_FIRST)
    return {"timing_caches": digest(b"".join(f"{file.name}:{digest(file.read_bytes())};".encode() for file in files))}


def tactics_of(layer_info: Path) -> dict[str, str]:
    """Tactic (name, else value) by layer name, from detailed layer info; empty where it has none."""
    try:
        layers = json.loads(layer_info.read_text(encoding="utf-8", errors="replace")).get("Layers", [])
    except (OSError, ValueError, AttributeError):
        return {}
    found = {}
    for layer in layers:
        if isinstance(layer, dict) and (tactic := layer.get("TacticName") or layer.get("TacticValue")):
            found[str(layer.get("Name"))] = str(tactic)
    return found


def compare_tactics(before: Path, after: Path) -> str:
    """One sentence: does a replayed engine run the recorded engine's tactics?"""
    old, new = tactics_of(before), tactics_of(after)
    if not old or not new:
        return "replayed tactics not compared: layer info without tactic names"
    differing = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    if not differing:
        return f"replayed: the tactics of all {len(new)} layers are the recorded ones"
    return f"replayed, but {len(differing)} of {len(new)} layers differ in tactic: {', '.join(differing[:10])}"
