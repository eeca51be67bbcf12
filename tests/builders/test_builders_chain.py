"""Recipe to verdict on the trtexec backend with a stand-in executable: trained and exported for real, built and timed by make-believe."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import StageError
from pipeline.records.evidence import read_evidence
from pipeline.records.io import read
from pipeline.records.run import Run
from pipeline.records.rung import Rung, Step
from pipeline.records.verdict import RuleResult
from pipeline.run import all_runs, run

SHORT = ("measure.seconds=0.1", "measure.rounds=3", "measure.layer_passes=1", "measure.parity=false", "build.repeats=1")


@pytest.fixture
def chain(exported: Any, standin: Any, tmp_path: Path) -> Any:
    """Runs the recipe on the stand-in, in a copy of that workspace: training and export come from the store."""
    workspace = tmp_path / "workspace"
    shutil.copytree(exported.workspace, workspace)

    def go(version: str = "10.3.0", mode: str = "", last: str | None = "tactics", **build: Any) -> Any:
        options = standin(version, mode)
        settings = {"backend": "trtexec", "trtexec": options["trtexec"], **build}
        overrides = [*exported.overrides, *SHORT, *(f"build.{key}={json.dumps(value)}" for key, value in settings.items())]
        return run(exported.recipe, overrides=overrides, workspace=workspace, last=last)

    go.workspace = workspace
    return go


@pytest.mark.parametrize("version", ["8.6.1", "10.3.0", "11.1.0"])
def test_tactics_are_read_from_each_versions_log_and_joined_to_onnx(chain, version):
    evidence = chain(version, repeats=2)
    assert [engine.name for engine in evidence.build.engines] == ["sparse", "twin", "dense", "sparse#2", "twin#2", "dense#2"]
    assert all(engine.built_with["tensorrt"] == version and "stand-in" in engine.simulated for engine in evidence.build.engines)
    builds = {build.arm: build for build in evidence.tactics.builds}
    known = {node for layer in evidence.export.layers for node in layer.layer.onnx_nodes}
    assert len(builds) == 6
    for arm in ("sparse", "sparse#2"):
        layers = [layer for layer in builds[arm].layers if layer.selected is Rung.YES]
        assert len(layers) >= 5
        assert all(layer.eligible is Rung.YES and layer.timed is Rung.YES for layer in layers)
        assert all(set(layer.onnx_nodes) & known for layer in layers)
    for arm in ("twin", "dense", "twin#2", "dense#2"):
        assert not builds[arm].selected


def test_from_recipe_to_verdict(chain):
    evidence = chain(last=None)
    verdict = evidence.gate
    rules = {rule.kind: rule for rule in verdict.rules}
    assert rules["latency"].outcome is RuleResult.INCONCLUSIVE  # made-up times decide nothing
    assert "stand-in" in rules["latency"].why
    assert rules["quality"].outcome is RuleResult.PASS  # the outputs are ONNX Runtime's on the real file
    assert verdict.outcome is RuleResult.INCONCLUSIVE
    assert "stand-in" in evidence.measure.conditions.simulated
    selected = [layer for layer in verdict.ladder if layer.steps.get(Step.SELECTED) is Rung.YES]
    assert len(selected) >= 5
    assert all(layer.steps[Step.FASTER_LAYER] is Rung.UNKNOWN for layer in selected)
    assert {time.arm for time in evidence.measure.layers} >= {"sparse", "twin", "dense"}
    assert all(time.onnx_nodes for time in evidence.measure.layers)
    assert (evidence.folder / "build" / "sparse.log").is_file()
    assert (evidence.folder / "build" / "sparse.reproduce.sh").is_file()


def test_a_replayed_build_runs_the_recorded_tactics(chain):
    chain()
    recorded = next((chain.workspace / "engines" / "quickstart").glob("build-*/sparse.cache")).parent
    evidence = chain(timing_cache="replay", timing_cache_from=str(recorded))
    first = {layer.name: layer.tactic.name for build in read_evidence(evidence.folder).tactics.builds for layer in build.layers}
    assert len(evidence.build.notes) == 3
    assert all("are the recorded ones" in note for note in evidence.build.notes)
    assert first


def test_over_a_prefix_into_a_hostile_folder(chain, programs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    evidence = chain(command=["ssh", "orin", "docker", "exec", "-i", "trt"], remote_folder=str(tmp_path / "far $(id) 'away'"))
    assert evidence.build.environment["target"] == "ssh orin docker exec -i trt"
    assert evidence.tactics.builds[0].selected


@pytest.mark.parametrize(
    ("mode", "words"), [("fails", "Could not find any implementation"), ("killed", "signal 9"), ("hangs", "no end within 2 s")]
)
def test_a_build_that_ends_badly_fails_the_run_and_keeps_what_was_before(chain, mode, words):
    with pytest.raises(StageError, match=words):
        chain(mode=mode, timeout_s=2)
    record = read(all_runs(chain.workspace)[-1] / "run.json", Run)
    assert record.result == "failed"
    stages = {status.stage: status.status for status in record.stages}
    assert [stages[name] for name in ("train", "freeze", "export", "build")] == ["cached", "cached", "cached", "failed"]
    assert list((chain.workspace / "engines" / "quickstart").glob("build-*.partial/sparse.log"))


def test_passed_after_skipped_tactics_reaches_the_record(chain):
    evidence = chain(mode="skips")
    assert any("skipped for lack of memory" in note for note in evidence.build.notes)
    assert all(build.skipped_tactics >= 1 for build in evidence.tactics.builds)
