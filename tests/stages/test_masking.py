"""What the recipe says about masks reaches the masks: criterion, permutation, siblings, layers of an earlier run."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.recipe.schema import Masks
from pipeline.records import io
from pipeline.records.arms import ExportedLayer, OnnxArms
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer, TacticReport
from pipeline.stages import masking
from pipeline.stages.base import Work


class Samples:
    def __init__(self, count: int = 200) -> None:
        self.x = np.random.default_rng(0).standard_normal((count, 16)).astype(np.float32)

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, index: np.ndarray) -> Any:
        return {"x": self.x[index]}, {}


DATA: Any = SimpleNamespace(train=Samples())


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 8))


def work(folder: Path, **masks: Any) -> Work:
    return Work({"train": {"masks": Masks(proposer="sparsegate", **masks).model_dump()}, "seed": 3}, folder, folder)


@pytest.mark.parametrize("criterion", ["magnitude", "wanda", "sparsegpt", "sparsegpt-joint", "first-order"])
def test_the_criterion_of_the_recipe_chooses(criterion, tmp_path):
    model = net()
    before = copy.deepcopy(model.state_dict())
    proposal, permutation = masking.choose(model, DATA, work(tmp_path, criterion=criterion, calibration_samples=100), "cpu")
    assert {one.criterion for one in proposal.decisions} == {criterion} and permutation is None
    assert proposal.calibration_samples == (None if criterion == "magnitude" else 100)
    changed = any(not torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert changed == criterion.startswith("sparsegpt")


def test_permutation_runs_before_masking_and_keeps_the_function(tmp_path):
    model, x = net(), torch.from_numpy(DATA.train.x)
    before = model(x)
    proposal, permutation = masking.choose(model, DATA, work(tmp_path, permute_seconds=0.3), "cpu")
    assert permutation is not None and [one.outcome for one in permutation.layers] == ["refused", "permuted", "permuted"]
    assert torch.allclose(model(x), before, atol=1e-5)
    kept = {one.layer.id: one.kept_magnitude for one in proposal.decisions}
    assert all(kept[one.layer.id] == pytest.approx(one.kept_after) for one in permutation.layers)


def earlier_run(folder: Path, builds: int) -> Path:
    layers = [WeightedLayer(id=name, weight=f"{name}.weight", kind="Linear", onnx_nodes=[f"node_{name}"]) for name in ("0", "2", "4")]
    found = [TacticLayer(id=name, name=f"node_{name}", selected=Rung.NO if name == "2" else Rung.YES) for name in ("0", "2", "4")]
    report = TacticReport(builds=[Build(id=number, arm="sparse", layers=found) for number in range(builds)])
    io.write(folder / "records" / "tactics.json", report)
    exported = [ExportedLayer(layer=layer, proof=Rung.YES, text="") for layer in layers]
    io.write(folder / "records" / "export.json", OnnxArms(arms=[], layers=exported))
    return folder


def test_layers_without_a_sparse_tactic_in_the_earlier_run_stay_dense(tmp_path):
    run = earlier_run(tmp_path / "logs" / "mine" / "r1", builds=3)
    proposal, _ = masking.choose(net(), DATA, work(tmp_path, only_where_selected="logs/mine/r1"), "cpu")
    assert [(one.layer.id, one.rule) for one in proposal.decisions] == [("0", "SG301"), ("2", "SG311"), ("4", "SG301")]
    assert proposal.decisions[1].text == "dense tactics in all 3 builds of r1"
    masks = {"only_where_selected": "logs/mine/r1"}
    key = masking.earlier_records(masks, tmp_path)
    assert key != masking.earlier_records({"only_where_selected": None}, tmp_path) == {}
    earlier_run(run, builds=4)
    assert masking.earlier_records(masks, tmp_path) != key


def test_a_run_that_cannot_tell_is_refused(tmp_path):
    earlier_run(tmp_path / "logs" / "mine" / "r1", builds=1)
    with pytest.raises(InputError, match="1 builds of the arm"):
        masking.choose(net(), DATA, work(tmp_path, only_where_selected="logs/mine/r1"), "cpu")
    with pytest.raises(InputError, match="no run 'nowhere'"):
        masking.choose(net(), DATA, work(tmp_path, only_where_selected="nowhere"), "cpu")
