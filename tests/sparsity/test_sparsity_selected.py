"""Dense weights go back to exactly the layers in which no build selected a sparse tactic."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipeline import sparsity
from pipeline.errors import InputError
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer, TacticReport


def layer(name):
    return WeightedLayer(id=name, modules=[name], weight=f"{name}.weight", kind="Linear", onnx_nodes=[f"/{name}/Gemm"])


def engine(name, selected, parts=()):
    return TacticLayer(id=name, name=name, onnx_nodes=list(parts), selected=selected)


def build(number, *layers, arm="sparse", result="passed"):
    return Build(id=number, arm=f"{arm}#{number + 1}" if number else arm, result=result, layers=list(layers))


YES, NO, UNKNOWN, DISPUTED = Rung.YES, Rung.NO, Rung.UNKNOWN, Rung.DISPUTED
# selected in three builds, and whether dense weights go back
CASES = {
    "always": ([YES, YES, YES], False),
    "never": ([NO, NO, NO], True),
    "sometimes": ([NO, YES, NO], False),
    "unknown once": ([NO, NO, UNKNOWN], False),
    "disputed": ([DISPUTED, NO, NO], False),
    "missing once": ([NO, None, NO], False),
}


def crafted():
    builds = []
    for number in range(3):
        found = [engine(f"/{name}/Gemm", rungs[number]) for name, (rungs, _) in CASES.items() if rungs[number] is not None]
        found.append(engine("/q/Gemm || /k/Gemm", NO, ["/q/Gemm", "/k/Gemm"]))
        builds.append(build(number, *found))
    others = [build(3, engine("/always/Gemm", NO), arm="dense"), build(4, engine("/never/Gemm", YES), result="failed")]
    return TacticReport(builds=[*builds, *others])


def test_exactly_the_right_layers_go_back():
    layers = [layer(name) for name in (*CASES, "q", "k", "not in the engine")]
    returned = sparsity.only_where_selected(crafted(), layers)
    assert set(returned.dense) == {"never.weight", "q.weight", "k.weight"}
    assert set(returned.masked) == {one.weight for one in layers} - set(returned.dense)
    assert returned.masked["sometimes.weight"] == "selected in 1 of 3 builds, not selected in 2 of 3 builds"
    assert returned.masked["not in the engine.weight"] == "unknown in 3 of 3 builds"


def test_a_sparse_tactic_in_one_profile_keeps_the_mask():
    report = TacticReport(builds=[build(0, engine("/a/Gemm", NO), engine("/a/Gemm", YES))])
    assert sparsity.only_where_selected(report, [layer("a")], builds=1).dense == {}


def test_too_few_builds_or_no_sparse_tactics_at_all_are_refused():
    with pytest.raises(InputError, match="1 builds of the arm 'sparse', and 3 are needed"):
        sparsity.only_where_selected(TacticReport(builds=[build(0, engine("/a/Gemm", NO))]), [layer("a")])
    with pytest.raises(InputError, match="no sparse kernels on onnxruntime"):
        sparsity.only_where_selected(TacticReport(applicable=False, why_not="no sparse kernels on onnxruntime"), [layer("a")])


def test_layers_that_got_their_weights_back_stay_dense_with_their_siblings_and_the_rest_is_masked():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.up, self.down = (nn.Linear(16, 16) for _ in range(4))

        def forward(self, x):
            return self.down(self.up(self.q(x) * self.k(x)))

    back = {"q.weight": "dense tactics in all 3 builds", "down.weight": "dense tactics in all 3 builds"}
    proposal = sparsity.propose(Two(), criterion="magnitude", give_back=back, proposer="sparsegate")
    assert {one.layer.id: one.rule for one in proposal.decisions} == {"q": "SG311", "k": "SG312", "up": "SG301", "down": "SG311"}
    assert set(proposal.masks) == {"up.weight"}
    assert "all 3 builds" in proposal.decisions[0].text
    model = Two()
    sparsity.hold(model, proposal.masks)
    assert torch.count_nonzero(model.q.weight) == 256
