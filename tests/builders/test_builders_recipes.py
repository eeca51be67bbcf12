"""The TensorRT recipes are right, and what a sweep of one says is what its runs say."""

from __future__ import annotations

import os
from pathlib import Path

import crafted_run as crafted
import numpy as np
import pytest
from builder_cases import mlp
from click.testing import CliRunner

from pipeline.builders.options import read_options
from pipeline.builders.profiles import untuned_batches
from pipeline.cli import group
from pipeline.errors import StageError
from pipeline.recipe import load_recipe
from pipeline.records.measurement import Estimate
from pipeline.records.rung import Rung
from pipeline.records.sweep import Sweep, SweepPoint
from pipeline.report.sweep_text import sweep_text
from pipeline.run.sweep import outcome, points, run_sweep

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAMES = ("resnet50-imagenet", "vit-b16", "remote-orin", "probe-onnx")


@pytest.fixture
def environment(monkeypatch, tmp_path):
    for name, value in {"IMAGES": tmp_path, "MODEL": tmp_path / "m.onnx", "SAMPLES": tmp_path / "s.npz"}.items():
        monkeypatch.setenv(name, str(value))


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_right_and_its_backend_takes_its_options(environment, name):
    recipe = load_recipe(RECIPES / f"{name}.yaml")
    assert recipe.recipe.name == name
    read_options(recipe.sections["build"])
    comments = sum("#" in line for line in (RECIPES / f"{name}.yaml").read_text().splitlines())
    assert comments >= 5  # it teaches


@pytest.mark.parametrize("name", ["resnet50-imagenet", "vit-b16", "remote-orin"])
def test_release_recipes_build_three_times_and_tune_what_they_measure(environment, name):
    sections = load_recipe(RECIPES / f"{name}.yaml").sections
    assert sections["build"]["repeats"] >= 3
    assert untuned_batches(sections["build"]["profiles"], sections["measure"]["batches"]) == []


def test_the_remote_recipe_validates_where_the_target_answers(environment, standin, programs, monkeypatch):
    trtexec = standin()["trtexec"]
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    found = CliRunner().invoke(group, ["validate", str(RECIPES / "remote-orin.yaml"), "--set", f"build.trtexec={trtexec}"])
    assert "a right recipe" in found.output
    assert "backend trtexec (tensorrt 10.3.0, target ssh orin" in found.output
    assert "warning" not in found.output


def test_points_are_all_combinations():
    assert points({"a.b": [1, 2], "c.d": ["x"]}) == [{"a.b": "1", "c.d": '"x"'}, {"a.b": "2", "c.d": '"x"'}]


def test_a_point_that_fails_is_kept_with_its_reason(tmp_path):
    def fail(settings):
        raise StageError("TensorRT built no engine")

    found = run_sweep("r", {"export.batch.opt": [1, 8]}, tmp_path, fail)
    assert [point.error for point in found.points] == ["TensorRT built no engine"] * 2
    assert "failed" in sweep_text(found, 100)


def ratio(low: float, high: float) -> Estimate:
    return Estimate(value=(low + high) / 2, low=low, high=high, confidence=0.95, n=20)


def test_the_table_says_where_it_begins_to_pay():
    made = [("1", ratio(1.1, 1.2)), ("8", ratio(0.98, 1.01)), ("32", ratio(0.8, 0.9)), ("64", None)]
    found = Sweep(recipe="r", points=[SweepPoint(settings={"b": b}, over_dense=gain, layers=5, eligible=4, selected=3) for b, gain in made])
    assert [point.pays for point in found.points] == ["no", "not decided", "yes", "not decided"]
    text = sweep_text(found, 100)
    assert "3 of 5" in text
    assert "0.850 [0.800, 0.900]" in text
    assert "break-even: 2:4 pays at 1 of 4 points, first at b=32" in text


def test_what_is_not_known_is_no_zero():
    """As on a backend without sparse kernels, or without a verbose log."""
    known = SweepPoint(settings={"b": "1"}, layers=5, eligible=0, selected=0)
    partly = SweepPoint(settings={"b": "2"}, layers=5, eligible=2, eligible_unknown=3, selected=1, selected_unknown=4)
    lines = sweep_text(Sweep(recipe="r", points=[known, partly, SweepPoint(settings={"b": "3"})]), 100).splitlines()
    assert lines[1].split()[:5] == ["1", "0", "0", "of", "5"]
    assert "2 (3 unknown)  1 of 5 (4 unknown)" in lines[2]
    assert lines[3].split() == ["3", "-", "-", "-", "-", "not", "decided"]


def test_a_point_of_a_run_says_what_its_tactic_report_says():
    unknown = crafted.engine_layer(crafted.BODY, eligible=Rung.UNKNOWN, timed=Rung.UNKNOWN, selected=Rung.UNKNOWN)
    evidence = crafted.evidence(tactics=crafted.tactic_report(crafted.build("sparse", unknown)))
    point = outcome({}, evidence, "r/1")
    assert (point.layers, point.eligible, point.selected, point.eligible_unknown) == (1, None, None, 1)
    assert outcome({}, crafted.evidence(), "r/1").selected == 1
    assert outcome({}, crafted.on_onnxruntime(), "r/1").eligible is None


def test_a_gain_under_a_broken_control_is_not_decided():
    ratios = [crafted.ratio(0.9, 0.88, 0.93), crafted.ratio(1.05, 1.02, 1.08, arm="dense@again", control=True)]
    point = outcome({"b": "1"}, crafted.evidence(measure=crafted.measurement(ratios=ratios)), "r/1")
    assert point.pays == "not decided"
    assert "b=1: the control dense@again/dense leaves out 1" in sweep_text(Sweep(recipe="r", points=[point]), 100)
    assert outcome({}, crafted.evidence(), "r/1").pays == "yes"


def test_made_up_times_pay_nowhere():
    assert SweepPoint(settings={}, over_dense=ratio(0.5, 0.6), simulated="a stand-in").pays == "not decided"


@pytest.mark.soak
def test_the_probe_runs_its_sweep_on_a_stand_in(environment, standin, tmp_path):
    trtexec = standin()["trtexec"]
    mlp(tmp_path / "m.onnx", sparse=False)
    rng = np.random.default_rng(0)
    splits = {"train": 8, "select": 8, "test": 16}
    arrays = {f"{name}_x": rng.standard_normal((n, 32)).astype(np.float32) for name, n in splits.items()}
    labels = {f"{name}_y": rng.integers(0, 16, n) for name, n in splits.items()}
    np.savez(tmp_path / "s.npz", **arrays, **labels)
    settings = {
        "data.heads": "{y: accuracy}",
        "model.heads": "[y]",
        "build.backend": "trtexec",
        "build.trtexec": trtexec,
        "measure.seconds": "0.1",
        "measure.rounds": "3",
        "measure.warmup_seconds": "0",
        "measure.layer_passes": "0",
        "measure.parity": "false",
        "sweep": "{export.batch.opt: [8], build.precision: [file, fp16]}",
        "export.batch.max": "16",
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    found = CliRunner().invoke(group, ["run", str(RECIPES / "probe-onnx.yaml"), "--quiet", "--workspace", str(tmp_path / "w"), *words])
    assert found.exit_code == 0, (found.output, found.exception)
    assert found.output.count("2 of 2") == 2  # both layers are pruned, big enough, and get the stand-in's sparse kernel
    assert "simulated: sparsegate stand-in" in found.output
    assert "break-even: not decided" in found.output
    assert list((tmp_path / "w").rglob("sweep-*.json"))
