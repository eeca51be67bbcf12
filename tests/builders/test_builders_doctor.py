"""`doctor` says what is missing and the command that brings it; `validate` warns of shapes that are measured and not tuned."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from pipeline.builders.survey import COULD, NEEDS, survey
from pipeline.cli import group
from pipeline.records.io import decode
from pipeline.records.survey import Survey


def doctor(*words: str):
    return CliRunner().invoke(group, ["doctor", *words])


def test_every_missing_need_names_what_brings_it():
    for backend in survey().backends:
        assert backend.ready == all(need.found for need in backend.needs)
        assert all(need.install for need in backend.needs if not need.found)
        assert backend.could == COULD[backend.name][0 if backend.ready else 1]


def test_text_and_json_say_the_same():
    text, data = doctor().output, doctor("--format", "json").output
    found = decode(data.encode(), Survey)
    assert [backend.name for backend in found.backends] == list(NEEDS)
    for backend in found.backends:
        assert f"{backend.name}: {'ready' if backend.ready else 'not ready'}" in text
        for need in backend.needs:
            assert (need.install in text) or need.found
    assert text.splitlines()[-1].startswith("next: ")


def test_a_machine_with_a_gpu_is_ready_when_all_is_there(monkeypatch):
    gpu = {"name": "GPU X", "uuid": "u", "compute_capability": "8.9", "driver": "580.1"}
    monkeypatch.setattr("pipeline.machine.gpus", lambda: [gpu])
    monkeypatch.setattr("pipeline.builders.survey.metadata.version", lambda name: "1.0")
    monkeypatch.setattr("pipeline.builders.survey.installed", lambda library: "11.4")
    needs = {check.what: check.look for check in NEEDS["tensorrt"]}
    assert needs["an NVIDIA GPU"]() == "GPU X (8.9)"
    assert needs["NVIDIA's driver (libcuda)"]() == "580.1"
    tensorrt = next(backend for backend in survey().backends if backend.name == "tensorrt")
    assert [need.what for need in tensorrt.needs if not need.found] == ["libnvinfer"]
    assert not tensorrt.ready


def test_a_target_is_asked_over_its_prefix(standin, programs):
    options = standin("11.1.0")
    target = json.loads(doctor("--format", "json", "--command", f"{programs}/ssh orin", "--trtexec", options["trtexec"]).output)["target"]
    assert target["tensorrt"] == "11.1.0"
    assert "stand-in" in target["simulated"]


def test_a_target_that_is_not_there_is_an_error(tmp_path):
    found = doctor("--command", str(tmp_path / "nothing"))
    assert "cannot start" in str(found.exception)


@pytest.mark.parametrize(
    ("extra", "warned"),
    [
        ("measure: {batches: [1, 8]}", True),
        ("measure: {batches: [8]}", False),
        (
            "measure: {batches: [1, 8]}\nbuild: {backend: trtexec, trtexec: T, profiles: [{x: {min: [1], opt: [1], max: [4]}},"
            " {x: {min: [1], opt: [8], max: [8]}}]}",
            False,
        ),
    ],
)
def test_shapes_that_no_opt_shape_tunes_are_warned_of(standin, tmp_path, extra, warned):
    trtexec = standin()["trtexec"]
    build = "" if "build:" in extra else f"build: {{backend: trtexec, trtexec: {trtexec}}}\n"
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\nmodel: {timm: resnet18}\ndata: {digits: true}\nexport: {batch: {min: 1, opt: 8, max: 8}}\n"
        + build
        + extra.replace("trtexec: T", f"trtexec: {trtexec}")
    )
    found = CliRunner().invoke(group, ["validate", str(recipe)])
    assert "a right recipe" in found.output, found.output
    assert ("no optimization profile has it as its opt shape" in found.output) == warned
