"""The chain goes on from what is stored, stops where it is told, and keeps what earlier stages made when a later one fails."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest

from pipeline.errors import InputError, StageError, TamperedError
from pipeline.records.evidence import Evidence, read_evidence
from pipeline.records.io import sha256_file
from pipeline.run import all_runs, find, run
from pipeline.run.chain import ORDER
from pipeline.run.housekeeping import prunable, remove, summaries

RECIPE = Path(__file__).resolve().parents[1] / "data" / "revisions" / "exact.yaml"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which the chain has run up to the build."""
    workspace = tmp_path_factory.mktemp("stored")
    run(RECIPE, workspace=workspace, last="build")
    return workspace


@pytest.fixture
def workspace(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "workspace"))


def statuses(evidence: Evidence) -> dict[str, str]:
    assert evidence.run is not None
    return {stage.stage: stage.status for stage in evidence.run.stages}


def test_until_stops_after_the_stage(stored):
    (folder,) = all_runs(stored)
    run_json = json.loads((folder / "run.json").read_text())
    assert [stage["stage"] for stage in run_json["stages"]] == ["train", "freeze", "export", "build"]
    assert run_json["result"] == "stopped"


def test_stages_that_are_stored_are_not_executed_again(workspace):
    evidence = run(RECIPE, workspace=workspace, last="tactics")
    assert statuses(evidence) == dict.fromkeys(ORDER[:4], "cached") | {"tactics": "ok"}


def test_a_changed_section_executes_its_stage_and_those_after_it_again(workspace):
    evidence = run(RECIPE, workspace=workspace, last="build", overrides=["export.opset=21"])
    assert statuses(evidence) == {"train": "cached", "freeze": "cached", "export": "ok", "build": "ok"}


def test_force_executes_a_stage_again_and_equal_output_leaves_later_stages_cached(workspace):
    evidence = run(RECIPE, workspace=workspace, last="export", force=["freeze"])
    assert statuses(evidence) == {"train": "cached", "freeze": "ok", "export": "cached"}


def test_from_needs_the_stages_before_it(workspace, tmp_path):
    assert statuses(run(RECIPE, workspace=workspace, first="export", last="export"))["export"] == "cached"
    with pytest.raises(InputError, match="stage train is not in the store"):
        run(RECIPE, workspace=tmp_path / "empty", first="export", last="export")


@pytest.mark.parametrize("option", [{"first": "tarin"}, {"last": "gates"}, {"force": ["all"]}])
def test_an_unknown_stage_is_refused_before_anything_is_written(option, tmp_path):
    with pytest.raises(InputError, match="no stage"):
        run(RECIPE, workspace=tmp_path / "w", **option)
    assert not (tmp_path / "w").exists()


def test_a_failing_stage_keeps_the_stages_before_it(tmp_path):
    with pytest.raises(StageError):
        run(RECIPE, workspace=tmp_path, overrides=["export.precision=bf16"], last="build")
    (folder,) = all_runs(tmp_path)
    record = json.loads((folder / "run.json").read_text())
    assert record["result"] == "failed"
    assert [(stage["stage"], stage["status"]) for stage in record["stages"]] == [
        ("train", "ok"),
        ("freeze", "ok"),
        ("export", "failed"),
        ("build", "skipped"),
    ]
    assert "opset" in record["stages"][2]["error"]
    assert (folder / "records" / "freeze.json").is_file()
    evidence = run(RECIPE, workspace=tmp_path, overrides=["export.precision=bf16", "export.opset=22"], last="export")
    assert statuses(evidence) == {"train": "cached", "freeze": "cached", "export": "ok"}


def test_a_changed_source_file_changes_the_key(stored, tmp_path):
    recipe = Path(shutil.copytree(RECIPE.parent, tmp_path / "recipe")) / RECIPE.name
    workspace = Path(shutil.copytree(stored, tmp_path / "workspace"))
    assert statuses(run(recipe, workspace=workspace, last="train")) == {"train": "cached"}
    source = recipe.parent / "exact.py"
    source.write_text(source.read_text() + "\n# changed\n")
    assert statuses(run(recipe, workspace=workspace, last="train")) == {"train": "ok"}


def test_a_run_records_what_another_person_needs(stored):
    (folder,) = all_runs(stored)
    record = json.loads((folder / "run.json").read_text())
    assert record["schema"] == "sparsegate.run/1"
    assert record["recipe_text"] == RECIPE.read_text()
    assert {"python", "os", "cpu", "cores", "packages", "seed"} <= record["provenance"].keys()
    assert record["provenance"]["packages"]["torch"]
    export = next(stage for stage in record["stages"] if stage["stage"] == "export")
    model = stored / "engines" / "exact" / export["folder"] / "sparse.onnx"
    assert export["artifacts"]["sparse.onnx"] == sha256_file(model)


def test_the_runs_folder_holds_records_and_logs_but_no_models(stored):
    (folder,) = all_runs(stored)
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"run.json", "train.json", "freeze.json", "export.json", "build.json"} <= names
    assert not any(name.endswith((".onnx", ".safetensors")) for name in names)
    assert any(name.endswith(".log") for name in names)


def test_a_run_whose_folder_can_take_no_more_has_failed_at_that_stage(workspace, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(source), None, str(target))

    monkeypatch.setattr("pipeline.run.chain.shutil.copyfile", full)
    with pytest.raises(StageError, match="stage train stopped: No space left on device") as caught:
        run(RECIPE, workspace=workspace, last="tactics")
    folder = all_runs(workspace)[-1]
    assert str(folder / "train") in caught.value.where
    found = json.loads((folder / "run.json").read_text())
    assert found["result"] == "failed"
    assert [stage["status"] for stage in found["stages"]] == ["failed"] + ["skipped"] * 4


def test_runs_are_found_by_folder_name_and_recipe(workspace):
    run(RECIPE, workspace=workspace, last="train")
    first, second = all_runs(workspace)
    assert find(str(first), workspace) == first
    assert find(f"exact/{first.name}", workspace) == first
    assert find("exact", workspace) == second
    with pytest.raises(InputError, match="no run 'exakt'") as caught:
        find("exakt", workspace)
    assert "exact" in str(caught.value)


def test_runs_are_listed_with_their_stages(stored):
    (line,) = summaries(stored)
    assert line.startswith("exact/")
    assert "train:ok" in line
    assert "stopped" in line


def test_prune_offers_only_what_no_kept_run_needs(workspace):
    run(RECIPE, workspace=workspace, last="build", overrides=["export.opset=21"])
    assert list(prunable(workspace, keep=2)) == []
    offered = {folder.name.partition("-")[0] for folder, _ in prunable(workspace, keep=1)}
    assert offered == {"export", "build"}
    for folder, size in list(prunable(workspace, keep=1)):
        assert size > 0
        remove(folder)
    assert statuses(run(RECIPE, workspace=workspace, last="build", overrides=["export.opset=21"])) == dict.fromkeys(ORDER[:4], "cached")


def test_a_record_that_is_not_what_its_stage_wrote_is_refused(workspace):
    (folder,) = all_runs(workspace)
    record = folder / "records" / "build.json"
    record.write_bytes(record.read_bytes().replace(b'"arms"', b'"arms" ', 1).rstrip() + b" ")
    with pytest.raises(TamperedError, match="record of stage build does not match"):
        read_evidence(folder)


def test_a_record_that_is_gone_is_missed(workspace):
    (folder,) = all_runs(workspace)
    (folder / "records" / "export.json").unlink()
    with pytest.raises(InputError, match="record of stage export is gone"):
        read_evidence(folder)
