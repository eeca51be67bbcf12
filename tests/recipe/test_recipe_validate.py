from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli import group
from pipeline.errors import InputError
from pipeline.recipe import load_recipe
from pipeline.recipe.readiness import warnings

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
QUICKSTART = str(ROOT / "recipes" / "quickstart.yaml")


def validate(*args):
    return CliRunner().invoke(group, ["validate", *map(str, args)])


def test_the_quickstart_is_right_and_can_run_here():
    result = validate(QUICKSTART)
    assert result.exit_code == 0, result.output
    assert "a right recipe (name quickstart" in result.output
    assert "This machine can run it" in result.output
    assert "missing" not in result.output


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ((), "onnxruntime counts no energy"),
        (("build.backend=trtexec", "measure.energy_seconds=0"), "measure.energy_seconds is 0"),
        (("build.backend=trtexec",), None),
    ],
)
def test_an_energy_rule_that_cannot_be_decided_is_told(more, says):
    loaded = load_recipe(QUICKSTART, ["gate.rules=[{kind: energy, over: dense, at_most: 0.9}]", *more])
    assert [text for text in warnings(loaded) if "energy" in text] == ([f"an energy rule stays inconclusive: {says}"] if says else [])


def test_validation_imports_nothing_heavy_and_runs_no_code(tmp_path):
    (tmp_path / "m.py").write_text("raise SystemExit('ran')\ndef build(): ...\n")
    recipe = tmp_path / "r.yaml"
    recipe.write_text("name: r\nmodel: {python: 'm.py:build'}\ndata: {digits: true}\n")
    code = (
        "import sys; from click.testing import CliRunner; from pipeline.cli import group;"
        "print(CliRunner().invoke(group, ['validate', sys.argv[1]]).output);"
        "print('heavy:', [name for name in ('torch', 'sklearn', 'timm', 'modelopt', 'onnx', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code, str(recipe)], capture_output=True, text=True, check=True)
    assert "can run it" in result.stdout
    assert "heavy: []" in result.stdout


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ("model: {python: 'no.py:build'}\ndata: {digits: true}", "cannot read"),
        ("model: {python: 'm.py:biuld'}\ndata: {digits: true}", "defines no 'biuld'"),
        ("model: {python: 'broken.py:build'}\ndata: {digits: true}", "broken.py:1"),
        ("model: {python: 'no_such_package.m:build'}\ndata: {digits: true}", "there is no module no_such_package.m"),
        ("model: {onnx: no.onnx}\ndata: {npz: no.npz}", "no.npz: not there"),
        ("model: {python: 'm.py:build', checkpoint: no.pt}\ndata: {digits: true}", "no.pt: not there"),
        ("model: {timm: resnet18}\ndata: {imagefolder: no}", "no: not there"),
        ("model: {python: 'm.py:build', files: [no.txt]}\ndata: {digits: true, slices: {csv: no.csv}}", "no.csv: not there"),
    ],
)
def test_what_is_missing_is_named_with_exit_code_2(tmp_path, recipe, says):
    (tmp_path / "m.py").write_text("from somewhere import build\n")
    (tmp_path / "broken.py").write_text("def build(:\n")
    path = tmp_path / "r.yaml"
    path.write_text(f"name: r\n{recipe}\n")
    result = validate(path)
    assert result.exit_code == 2
    assert says in result.output and "cannot run it" in result.output and "next:" in result.output


def test_a_package_that_is_not_installed_names_its_extra(tmp_path, monkeypatch):
    from pipeline.recipe import readiness

    monkeypatch.setattr(readiness, "find_spec", lambda name: None if name == "modelopt" else object())
    result = validate(QUICKSTART)
    assert result.exit_code == 2
    assert "package modelopt: not installed" in result.output and "pip install 'sparsegate[train]'" in result.output


def test_a_backend_that_cannot_work_here_says_why(monkeypatch):
    from pipeline import builders

    def describe(name, options):
        raise InputError(f"no GPU for {name}", hint="sparsegate doctor")

    monkeypatch.setattr(builders, "describe", describe)
    result = validate(QUICKSTART, "--set", "build.backend=tensorrt")
    assert result.exit_code == 2
    assert "no GPU for tensorrt" in result.output and "next: sparsegate doctor" in result.output


def test_a_gpu_is_needed_only_where_the_recipe_says_cuda(monkeypatch):
    from pipeline import machine

    monkeypatch.setattr(machine, "gpus", list)
    assert validate(QUICKSTART).exit_code == 0
    result = validate(QUICKSTART, "--set", "train.device=cuda")
    assert result.exit_code == 2 and "NVML finds none" in result.output


@pytest.mark.parametrize(
    "content", [None, b"", b"\x00\x01", b"name: r\nmodel: {python: 'm.py:b"], ids=["missing", "empty", "binary", "truncated"]
)
@pytest.mark.parametrize("command", ["validate", "run"])
def test_the_command_says_once_what_is_wrong_with_a_file_and_exits_with_2(tmp_path, content, command):
    path = tmp_path / "r.yaml"
    if content is not None:
        path.write_bytes(content)
    result = subprocess.run(
        [sys.executable, "-m", "pipeline", command, str(path)], capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT
    )
    assert result.returncode == 2
    assert result.stderr.startswith(f"sparsegate: {path}")
    assert "Traceback" not in result.stderr and len(result.stderr.splitlines()) <= 3
    assert [entry.name for entry in tmp_path.iterdir()] == ([] if content is None else ["r.yaml"])


def test_a_wrong_recipe_is_an_error_with_its_place(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("name: r\nmodle: {}\n")
    result = validate(path)
    assert isinstance(result.exception, InputError)
    assert f"{path}:2:1" in str(result.exception)
