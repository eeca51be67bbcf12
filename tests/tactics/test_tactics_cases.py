"""The reference logs read as their expectations say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline import tactics
from pipeline.errors import ExitCode, InputError
from pipeline.records import io

DATA = Path(__file__).parent.parent / "data" / "tactics"
EXPECTED = json.loads((DATA / "expected.json").read_text())


def projected(build: dict, wanted: dict) -> dict:
    """The keys of `wanted`, taken from the report of one build."""
    found = {}
    for key, value in wanted.items():
        if key == "passes":
            found[key] = len(build["passes"])
        elif key == "conflicts":
            found[key] = [conflict["code"] for conflict in build["conflicts"]]
        elif key == "layers":
            layers = {layer["name"]: layer for layer in build["layers"]}
            found[key] = {name: {path: fact(layers[name], path) for path in facts} for name, facts in value.items()}
        else:
            found[key] = build[key]
    return found


def fact(layer: dict, path: str):
    if path == "reason":
        codes = [reason["code"] for reason in layer["reasons"]]
        return codes[0] if len(codes) == 1 else codes
    for step in path.split("."):
        layer = layer[step]
    return layer


@pytest.mark.parametrize("name", [name for name, wanted in EXPECTED.items() if "builds" in wanted])
def test_a_reference_log_reads_as_expected(name):
    report = json.loads(io.encode(tactics.read([str(DATA / name)])))
    wanted = EXPECTED[name]["builds"]
    assert [projected(build, want) for build, want in zip(report["builds"], wanted)] == wanted
    assert len(report["builds"]) == len(wanted)


@pytest.mark.parametrize("name", [name for name, wanted in EXPECTED.items() if "error" in wanted])
def test_a_file_without_a_build_is_refused_with_the_next_step(name):
    with pytest.raises(InputError) as caught:
        tactics.read([str(DATA / name)])
    assert EXPECTED[name]["error"] in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE
    assert name in str(caught.value)
