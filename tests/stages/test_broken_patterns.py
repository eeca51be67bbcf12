"""A pattern that breaks stops the run at the stage whose claim it breaks, with the layer's name and exit code 4."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from pipeline import sources
from pipeline.errors import ExitCode, StageError
from pipeline.recipe import load_recipe
from pipeline.records.artifact import Artifact
from pipeline.records.io import Record
from pipeline.stages import export, freeze
from pipeline.stages.base import Upstream, Work, read_record


def upstream(quickstart_run: Any, *stages: str) -> dict[str, Upstream]:
    return {
        stage: Upstream(read_record(stage, (folder / "record.json").read_bytes()), folder)
        for stage in stages
        for folder in [quickstart_run.stage_folder(stage)]
    }


def work(quickstart_run: Any, folder: Path, given: Mapping[str, Upstream], *overrides: str) -> Work:
    recipe = load_recipe(quickstart_run.recipe, [*quickstart_run.overrides, *overrides])
    return Work(recipe.sections, recipe.base, folder, given)


def with_state(given: Upstream, field: str, folder: Path, change: Any) -> Upstream:
    """The stage with one of its state dicts changed, recorded as if the stage itself had written it so."""
    artifact: Artifact = getattr(given.record, field)
    for path in given.folder.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    state = sources.load_state(folder / artifact.path)
    change(state)
    sources.save_state(folder / artifact.path, state)
    record: Record = msgspec.structs.replace(given.record, **{field: Artifact.of(folder / artifact.path, relative_to=folder)})
    return Upstream(record, folder)


def masked_layer(given: Upstream) -> tuple[str, str]:
    """Id and weight of a masked layer that the exporter leaves under its own name."""
    decision = next(d for d in given.record.layers if d.masked and len(d.layer.shape) == 4)
    return decision.layer.id, decision.layer.weight


def grow_back(weight: str) -> Any:
    def change(state: dict[str, torch.Tensor]) -> None:
        flat = state[weight].view(-1)
        flat[flat == 0] = 0.25

    return change


def test_a_step_without_masks_is_found_by_freeze(quickstart_run, tmp_path):
    given = upstream(quickstart_run, "train")
    name, weight = masked_layer(given["train"])
    (tmp_path / "train").mkdir()
    given["train"] = with_state(given["train"], "weights", tmp_path / "train", grow_back(weight))
    with pytest.raises(StageError, match=name) as caught:
        freeze.execute(work(quickstart_run, tmp_path, given))
    assert caught.value.exit_code == ExitCode.STAGE


def test_regrowth_is_masked_again_where_the_recipe_says_so(quickstart_run, tmp_path):
    given = upstream(quickstart_run, "train")
    name, weight = masked_layer(given["train"])
    (tmp_path / "train").mkdir()
    given["train"] = with_state(given["train"], "weights", tmp_path / "train", grow_back(weight))
    frozen = freeze.execute(work(quickstart_run, tmp_path, given, "freeze.on_regrowth=remask"))
    assert any(weight in entry or name in entry for entry in frozen.remasked)
    state = sources.load_state(tmp_path / frozen.sparse.path)
    masks = sources.load_state(tmp_path / "train" / given["train"].record.masks.path)
    assert not state[weight][~masks[weight]].any()


def test_dense_weights_in_the_place_of_masked_ones_are_found_by_freeze(quickstart_run, tmp_path):
    given = upstream(quickstart_run, "train")
    dense = sources.load_state(given["train"].folder / given["train"].record.dense.path)
    (tmp_path / "train").mkdir()
    given["train"] = with_state(given["train"], "weights", tmp_path / "train", lambda state: state.update(dense))
    with pytest.raises(StageError, match="dense"):
        freeze.execute(work(quickstart_run, tmp_path, given))


def test_one_broken_group_in_the_frozen_checkpoint_is_found_by_export(quickstart_run, tmp_path):
    given = upstream(quickstart_run, "train", "freeze")
    name, weight = masked_layer(given["train"])

    def break_one_group(state: dict[str, torch.Tensor]) -> None:
        state[weight][0, 0:4, 0, 0] = 0.5

    (tmp_path / "freeze").mkdir()
    given["freeze"] = with_state(given["freeze"], "sparse", tmp_path / "freeze", break_one_group)
    with pytest.raises(StageError, match=name) as caught:
        export.execute(work(quickstart_run, tmp_path, given))
    assert "1 groups of 4" in str(caught.value)
    assert caught.value.exit_code == ExitCode.STAGE


@pytest.mark.parametrize("stage", ["freeze", "export"])
def test_in_the_store_the_digest_check_comes_first(quickstart_run, tmp_path, stage):
    workspace = quickstart_run.copy(tmp_path / "workspace")
    victim = next((workspace / "engines" / "quickstart").glob(f"{stage}-*/sparse.*"))
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    done = run_cli(quickstart_run, workspace)
    assert done.returncode == ExitCode.STAGE
    assert victim.name in done.stderr
    assert f"stage {stage}" in done.stderr
    assert "Traceback" not in done.stderr


def run_cli(quickstart_run: Any, workspace: Path, *words: str) -> subprocess.CompletedProcess[str]:
    settings = [word for setting in quickstart_run.overrides for word in ("--set", setting)]
    command = [sys.executable, "-m", "pipeline", "run", str(quickstart_run.recipe), *settings, "--workspace", str(workspace), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_cached_run_executes_nothing_and_gives_the_same_verdict(quickstart_run, tmp_path):
    workspace = quickstart_run.copy(tmp_path / "workspace")
    done = run_cli(quickstart_run, workspace)
    runs = sorted((workspace / "logs" / "quickstart").iterdir())
    assert len(runs) == 2, done.stderr
    first, second = (json.loads((folder / "run.json").read_text()) for folder in runs)
    assert {stage["status"] for stage in second["stages"]} == {"cached"}
    assert first["result"] == second["result"]
    assert (runs[0] / "records" / "gate.json").read_bytes() == (runs[1] / "records" / "gate.json").read_bytes()
