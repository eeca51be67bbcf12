"""Runs inside the bindings of one version: our path from options to a built network, over the true enums, with a duck-typed builder.

Prints JSON: per case the flags that were set by name, or the refusal; and which of the given dotted names exist.
Every attribute that our code reads or sets on a duck must exist in the true class.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import running
import tensorrt as trt
from ducks import duck

from pipeline.builders import versions
from pipeline.builders.options import read_options
from pipeline.builders.tensorrt.library import TENSORRT, api_version
from pipeline.builders.tensorrt.logger import LogFile
from pipeline.builders.tensorrt.plan import serialize
from pipeline.builders.tensorrt.request import PlanRequest
from pipeline.errors import SparsegateError


class Config(duck(trt.IBuilderConfig)):  # type: ignore[misc]
    def __init__(self) -> None:
        self._flags = {trt.BuilderFlag.TF32}  # TensorRT's default
        self._attributes: dict[str, Any] = {}
        self._profiles: list[Any] = []
        self._cache: bytes | None = None
        self._pools: dict[str, int] = {}
        self._sources: int | None = None
        self._preview: dict[str, bool] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if not name.startswith("_"):
            self._attributes[name] = getattr(value, "name", value if isinstance(value, int) else type(value).__name__)

    def set_flag(self, flag: Any) -> None:
        assert isinstance(flag, trt.BuilderFlag)
        self._flags.add(flag)

    def clear_flag(self, flag: Any) -> None:
        assert isinstance(flag, trt.BuilderFlag)
        self._flags.discard(flag)

    def get_flag(self, flag: Any) -> bool:
        return flag in self._flags

    def set_memory_pool_limit(self, pool: Any, size: int) -> None:
        self._pools[pool.name] = size

    def set_tactic_sources(self, mask: int) -> None:
        self._sources = mask

    def set_preview_feature(self, feature: Any, on: bool) -> None:
        self._preview[feature.name] = on

    def create_timing_cache(self, data: bytes) -> Any:
        return SimpleNamespace(serialize=lambda: data + b"+", data=data)

    def set_timing_cache(self, cache: Any, ignore_mismatch: bool) -> bool:
        assert ignore_mismatch is False
        self._cache = cache
        return cache.data != b"of another GPU"

    def get_timing_cache(self) -> Any:
        return self._cache

    def add_optimization_profile(self, profile: Any) -> int:
        self._profiles.append(profile)
        return len(self._profiles) - 1


class Profile(duck(trt.IOptimizationProfile)):  # type: ignore[misc]
    def __init__(self) -> None:
        self._shapes: dict[str, Any] = {}

    def set_shape(self, name: str, low: Any, opt: Any, high: Any) -> None:
        self._shapes[name] = [list(low), list(opt), list(high)]


class Network(duck(trt.INetworkDefinition)):  # type: ignore[misc]
    def __init__(self) -> None:
        self.num_layers, self.num_outputs, self.num_inputs = 3, 1, 1

    def get_input(self, index: int) -> Any:
        return SimpleNamespace(name="x", shape=(-1, 32), is_shape_tensor=False)


class Parser(duck(trt.OnnxParser)):  # type: ignore[misc]
    def __init__(self, network: Any, logger: Any) -> None:
        assert isinstance(logger, trt.ILogger)
        self.num_errors = 0

    def parse_from_file(self, path: str) -> bool:
        return Path(path).is_file()


class Builder(duck(trt.Builder)):  # type: ignore[misc]
    made: list[Any] = []

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        Builder.made.append(self)

    def create_network(self, flags: int) -> Network:
        self._network_flags = flags
        return Network()

    def create_builder_config(self) -> Config:
        self._config = Config()
        return self._config

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: Config) -> Any:
        if Path("fail").exists():
            self._logger.log(
                trt.ILogger.Severity.ERROR, "Error Code 10: Internal Error (Could not find any implementation for node conv1.)"
            )
            return None
        self._logger.log(trt.ILogger.Severity.INFO, "built")
        return b"plan"


Builder._duck_made = Builder.made  # reading `made` on the class is no attribute of trt.Builder
PROXY = SimpleNamespace(**{name: getattr(trt, name) for name in dir(trt) if not name.startswith("__")})
PROXY.__name__, PROXY.__version__ = "tensorrt", trt.__version__
PROXY.Builder, PROXY.OnnxParser = Builder, Parser


def run_case(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One build through the whole path."""
    version = api_version(TENSORRT, trt)
    options = read_options(case["options"])
    request = PlanRequest(
        library="tensorrt",
        onnx=__file__,  # any file: the duck parses nothing
        stem="sparse",
        folder=str(folder),
        sparse=case["sparse"],
        precision=case["precision"],
        profiles=[{"x": {"min": [1, 32], "opt": [8, 32], "max": [16, 32]}}],
        options=options,
    )
    log = LogFile(folder / "sparse.log", verbose=True)
    try:
        versions.check(options, request.precision, version)
        built = serialize(PROXY, TENSORRT, version, request, log, lambda *event: None, lambda: False)
    except SparsegateError as error:
        return {"refused": error.what, "hint": error.hint}
    finally:
        log.close()
    config = Builder._duck_made[-1]._config
    mask = Builder._duck_made[-1]._network_flags
    return {
        "flags": sorted(flag.name for flag in config._flags),
        "said_flags": built["flags"],
        "network": sorted(name for name, flag in trt.NetworkDefinitionCreationFlag.__members__.items() if mask & (1 << int(flag))),
        "attributes": config._attributes,
        "pools": config._pools,
        "profiles": [profile._shapes for profile in config._profiles],
        "cache": None if config._cache is None else config._cache.data.decode(),
        "preview": config._preview,
        "sources": None
        if config._sources is None
        else sorted(name for name, source in trt.TacticSource.__members__.items() if config._sources & (1 << int(source))),
        "notes": built["notes"],
        "log": (folder / "sparse.log").read_text(),
    }


def exists(dotted: str) -> bool:
    """Whether `BuilderFlag.TF32`, ... exists in this version."""
    found: Any = trt
    for part in dotted.split("."):
        found = getattr(found, part, None)
        if found is None:
            return False
    return True


def main() -> None:
    asked = json.loads(sys.stdin.read())
    answers: dict[str, Any] = {"version": trt.__version__, "cases": {}, "exists": {name: exists(name) for name in asked["names"]}}
    for name, case in asked["cases"].items():
        with tempfile.TemporaryDirectory() as scratch:
            answers["cases"][name] = run_case(case, Path(scratch))
    Path("fail").touch()
    with tempfile.TemporaryDirectory() as scratch:
        answers["none"] = run_case({"options": {}, "sparse": True, "precision": "fp32"}, Path(scratch))
    answers["session"] = running.answers()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
