"""What our code says to TensorRT, checked against the true Python API of five versions: `make contract`.

These tests fail where the bindings cannot be installed: a contract that was not checked does not hold.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import bindings
import pytest
from bindings import WHEELS, CannotInstallError, environment
from names import api_names

from pipeline.builders.tensorrt.dtypes import NUMPY_NAME
from pipeline.builders.tensorrt.logger import LETTERS
from pipeline.builders.versions import ABILITIES, parse_version

pytestmark = pytest.mark.contract
ROOT = Path(__file__).resolve().parents[2]
VERSIONS = tuple(WHEELS)
OLD, TEN = "8.6.1", ("10.3.0", "10.13.3.9")
ELEVEN = ("11.0.0.114", "11.4.0.106")

CASES: dict[str, dict[str, Any]] = {
    "sparse fp16": {"options": {}, "sparse": True, "precision": "fp16"},
    "twin fp16": {"options": {}, "sparse": False, "precision": "fp16"},
    "fp32": {"options": {"tf32": False}, "sparse": True, "precision": "fp32"},
    "bf16": {"options": {}, "sparse": True, "precision": "bf16"},
    "strong": {"options": {"typing": "strong"}, "sparse": True, "precision": "fp16"},
    "weak": {"options": {"typing": "weak"}, "sparse": True, "precision": "fp16"},
    "strict nans": {"options": {"strict_nans": True}, "sparse": True, "precision": "fp32"},
    "max tactics": {"options": {"max_tactics": 7}, "sparse": True, "precision": "fp32"},
    "everything": {
        "options": {
            "optimization_level": 4,
            "avg_timing": 5,
            "workspace_mib": 512,
            "tactic_sources": ["JIT_CONVOLUTIONS"],
            "preview_features": [],
        },
        "sparse": True,
        "precision": "fp32",
    },
    "cublas": {"options": {"tactic_sources": ["CUBLAS"]}, "sparse": True, "precision": "fp32"},
    "shared profiles": {"options": {"preview_features": ["PROFILE_SHARING_0806"]}, "sparse": True, "precision": "fp32"},
    "no cache": {"options": {"timing_cache": "off"}, "sparse": True, "precision": "fp32"},
    "diagnose": {"options": {"preset": "diagnose"}, "sparse": True, "precision": "fp32"},
}
ANY_VERSION = {"SPARSE_WEIGHTS", "TF32"}
EXPECTED: dict[str, dict[str, tuple[set[str], set[str]] | str]] = {
    # case -> version -> (builder flags, network flags), or words of the refusal
    "sparse fp16": {
        OLD: ({"FP16", *ANY_VERSION}, {"EXPLICIT_BATCH"}),
        **dict.fromkeys(TEN, ({"FP16", *ANY_VERSION}, set())),
        **dict.fromkeys(ELEVEN, (ANY_VERSION, set())),
    },
    "twin fp16": {
        OLD: ({"FP16", "TF32"}, {"EXPLICIT_BATCH"}),
        **dict.fromkeys(TEN, ({"FP16", "TF32"}, set())),
        **dict.fromkeys(ELEVEN, ({"TF32"}, set())),
    },
    "fp32": {OLD: ({"SPARSE_WEIGHTS"}, {"EXPLICIT_BATCH"}), **dict.fromkeys((*TEN, *ELEVEN), ({"SPARSE_WEIGHTS"}, set()))},
    "bf16": {
        OLD: "no bf16 flag",
        **dict.fromkeys(TEN, ({"BF16", *ANY_VERSION}, set())),
        **dict.fromkeys(ELEVEN, (ANY_VERSION, set())),
    },
    "strong": {
        OLD: "no strong typing",
        **dict.fromkeys(TEN, (ANY_VERSION, {"STRONGLY_TYPED"})),
        **dict.fromkeys(ELEVEN, (ANY_VERSION, set())),
    },
    "weak": {
        OLD: ({"FP16", *ANY_VERSION}, {"EXPLICIT_BATCH"}),
        **dict.fromkeys(TEN, ({"FP16", *ANY_VERSION}, set())),
        **dict.fromkeys(ELEVEN, "no weak typing"),
    },
    "strict nans": {
        **dict.fromkeys((OLD, "10.3.0"), "no strict NaNs"),
        **dict.fromkeys(("10.13.3.9", *ELEVEN), ({"STRICT_NANS", *ANY_VERSION}, set())),
    },
    "no cache": {
        OLD: ({"DISABLE_TIMING_CACHE", *ANY_VERSION}, {"EXPLICIT_BATCH"}),
        **dict.fromkeys((*TEN, *ELEVEN), ({"DISABLE_TIMING_CACHE", *ANY_VERSION}, set())),
    },
    "cublas": {
        OLD: (ANY_VERSION, {"EXPLICIT_BATCH"}),
        **dict.fromkeys(TEN, (ANY_VERSION, set())),
        **dict.fromkeys(ELEVEN, "no CUBLAS"),
    },
    "shared profiles": {
        OLD: (ANY_VERSION, {"EXPLICIT_BATCH"}),
        **dict.fromkeys(TEN, (ANY_VERSION, set())),
        **dict.fromkeys(ELEVEN, "no PROFILE_SHARING_0806"),
    },
}
REACHED: dict[str, str | None] = {
    # a name that not every version reaches -> the ability that leads to it; None: TensorRT-RTX alone
    "NetworkDefinitionCreationFlag.EXPLICIT_BATCH.name": "explicit batch",
    "NetworkDefinitionCreationFlag.STRONGLY_TYPED.name": "strong typing",
    "BuilderFlag.STRICT_NANS": "strict NaNs",
    "BuilderFlag.ERROR_ON_TIMING_CACHE_MISS": "error on cache miss",
    "IBuilderConfig.max_num_tactics": "max tactics",
    "IProgressMonitor": "progress monitor",
    "ComputeCapability": None,
}


@lru_cache
def answers(version: str) -> dict[str, Any]:
    """What the probe says inside the bindings of one version."""
    names = [*api_names(), *(f"DataType.{name}" for name in NUMPY_NAME), *(f"ILogger.Severity.{name}" for name in LETTERS)]
    names += ["BuilderFlag.FP16", "BuilderFlag.BF16"]
    replay = {
        "options": {"timing_cache": "replay", "timing_cache_from": str(ROOT / "tests" / "contract")},
        "sparse": True,
        "precision": "fp32",
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "contract" / "probe.py")],
        input=json.dumps({"cases": {**CASES, "replay": replay}, "names": names}),
        env={**environment(version), "PYTHONPATH": f"{environment(version)['PYTHONPATH']}:{ROOT}"},
        cwd=_scratch(version),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _scratch(version: str) -> Path:
    folder = ROOT / ".contract" / "runs" / version
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fail").unlink(missing_ok=True)
    return folder


@pytest.fixture(scope="module", autouse=True)
def recorded_cache():
    """A timing cache for the replay case."""
    file = ROOT / "tests" / "contract" / "sparse.cache"
    file.write_bytes(b"recorded")
    yield
    file.unlink()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_bindings_are_those_of_the_version(version):
    assert answers(version)["version"] == version


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", EXPECTED)
def test_each_version_gets_its_flags_and_none_that_it_lacks(version, case):
    found, expected = answers(version)["cases"][case], EXPECTED[case][version]
    if isinstance(expected, str):
        assert expected in found["refused"]
        assert found["hint"]
    else:
        assert (set(found["flags"]), set(found["network"])) == expected
        assert set(found["said_flags"]) == expected[0]  # what the record says is what was set


@pytest.mark.parametrize("version", VERSIONS)
def test_every_choice_arrives(version):
    found = answers(version)["cases"]["everything"]
    attributes = found["attributes"]
    assert attributes["avg_timing_iterations"] == 5
    assert attributes["builder_optimization_level"] == 4
    assert attributes["profiling_verbosity"] == "DETAILED"
    assert found["pools"] == {"WORKSPACE": 512 << 20}
    assert found["sources"] == ["JIT_CONVOLUTIONS"]
    assert not any(found["preview"].values())
    assert found["profiles"] == [{"x": [[1, 32], [8, 32], [16, 32]]}]
    assert ("progress_monitor" in attributes) == (parse_version(version) >= (10, 0))


@pytest.mark.parametrize("version", VERSIONS)
def test_defaults_that_differ_between_tools_are_set(version):
    assert answers(version)["cases"]["sparse fp16"]["attributes"]["avg_timing_iterations"] == 8
    assert answers(version)["cases"]["diagnose"]["attributes"]["avg_timing_iterations"] == 16
    assert "DISABLE_TIMING_CACHE" in answers(version)["cases"]["diagnose"]["flags"]


@pytest.mark.parametrize("version", VERSIONS)
def test_max_tactics_where_the_version_has_them(version):
    found = answers(version)["cases"]["max tactics"]
    if parse_version(version) < (10, 4):
        assert "no max tactics" in found["refused"]
    else:
        assert found["attributes"]["max_num_tactics"] == 7


@pytest.mark.parametrize("version", VERSIONS)
def test_a_replay_reads_its_cache_and_fails_on_a_miss_where_it_can(version):
    found = answers(version)["cases"]["replay"]
    assert found["cache"] == "recorded"
    can = parse_version(version) >= (10, 0)
    assert ("ERROR_ON_TIMING_CACHE_MISS" in found["flags"]) == can
    assert bool(found["notes"]) == (not can)


@pytest.mark.parametrize("version", VERSIONS)
def test_none_is_an_error_with_tensorrts_words_and_the_node(version):
    found = answers(version)["none"]
    assert "node conv1" in found["refused"]
    assert "Could not find any implementation" in found["refused"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_log_has_the_raw_severity_and_words(version):
    log = answers(version)["cases"]["sparse fp16"]["log"]
    assert "] [TRT] [I] built\n" in log
    assert "] [I] Builder flags: " in log


@pytest.mark.parametrize("version", VERSIONS)
def test_outputs_whose_shape_depends_on_data_come_through_an_allocator(version):
    found = answers(version)["session"]
    assert [run["y"] for run in found["runs"]] == [[1, 2, 3], list(range(1, 13)), []]
    assert all(run["z"] for run in found["runs"])  # the output of a known shape beside it
    assert found["settings"]["cuda_graph"] == "off"  # asked for, and not possible
    assert found["timed"] == {"gpu_compute": 4, "enqueue": 4, "host_latency": 4}
    assert found["profile"] == {"nonzero": [0.5, 0.5]}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_allocator_answers_what_the_version_asks(version):
    found = answers(version)["session"]
    assert {"reallocate_output", "notify_shape"} <= set(found["documented"])
    assert ("reallocate_output_async" in found["documented"]) == (parse_version(version) >= (10, 0))
    assert {name: found["allocator"][name] for name in found["documented"]} == found["documented"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_name_in_our_code_exists_in_the_versions_that_reach_it(version):
    exists, number = answers(version)["exists"], parse_version(version)
    reach = {"explicit batch": number < (10, 0), **{name: row.in_version(number) for name, row in ABILITIES.items()}}
    for name, files in api_names().items():
        if name not in REACHED:
            assert exists[name], f"{name} ({', '.join(sorted(files))}) is not in TensorRT {version}"
        elif (ability := REACHED[name]) is None:
            assert not exists[name]
        elif reach[ability]:
            assert exists[name], f"{ability} is said to be in {version}, but {name} is not"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "ability"),
    [
        ("BuilderFlag.FP16", "fp16 flag"),
        ("BuilderFlag.BF16", "bf16 flag"),
        ("BuilderFlag.STRICT_NANS", "strict NaNs"),
        ("BuilderFlag.ERROR_ON_TIMING_CACHE_MISS", "error on cache miss"),
        ("IBuilderConfig.max_num_tactics", "max tactics"),
        ("IProgressMonitor", "progress monitor"),
    ],
)
def test_the_table_of_abilities_is_true(version, name, ability):
    assert answers(version)["exists"][name] == ABILITIES[ability].in_version(parse_version(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_types_and_severities_are_tensorrts(version):
    exists = answers(version)["exists"]
    assert all(exists[f"ILogger.Severity.{name}"] for name in LETTERS)
    missing = {name for name in NUMPY_NAME if not exists[f"DataType.{name}"]}
    assert missing == ({"BF16", "INT64"} if parse_version(version) < (10, 0) else set())


def test_the_walk_finds_our_names():
    names = api_names()
    assert len(names) > 40
    assert set(REACHED) <= set(names)


def test_a_contract_that_cannot_be_checked_fails():
    with pytest.raises(CannotInstallError, match="no-such-program"):
        bindings._run(["no-such-program"])
    with pytest.raises(CannotInstallError, match="failed"):
        bindings._run(["gcc", "no-such-file.c"])
