"""The ladder judges each rung alone, and says why the first one missed is missed."""

from __future__ import annotations

import crafted_run as c
import pytest
from msgspec.structs import replace

from pipeline.records.evidence import Evidence
from pipeline.records.rung import Rung, Step
from pipeline.verdict import ladder

LAYER_STEPS = [Step.MASKED, Step.FROZEN, Step.EXPORTED, Step.ELIGIBLE, Step.TIMED, Step.SELECTED, Step.FASTER_LAYER]


def rows(evidence):
    return {item.of: item for item in ladder.build(evidence)}


def test_a_layer_that_is_proven_to_the_top_misses_nothing():
    body = rows(c.evidence())["body"]
    assert [body.steps[step] for step in LAYER_STEPS] == [Rung.YES] * 7
    assert (body.proven, body.missed, body.above_gap) == (Step.FASTER_LAYER, None, [])
    assert "build.log:12 Found names it" in body.texts[Step.ELIGIBLE]
    assert "0.750x" in body.texts[Step.FASTER_LAYER]


def test_the_first_rung_missed_names_its_reason():
    tail = rows(c.evidence())["tail"]
    assert (tail.proven, tail.missed) == (Step.TIMED, Step.SELECTED)
    assert "dense-faster: sparse 0.051 ms, dense 0.043 ms" in tail.texts[Step.SELECTED]


def test_a_layer_dense_by_decision_shows_its_rule_and_misses_nothing():
    stem = rows(c.evidence())["stem"]
    assert stem.missed is None
    assert stem.proven is None
    assert set(stem.steps.values()) == {Rung.NOT_APPLICABLE}
    assert stem.decision == "dense (SG303): 1 input channel is no multiple of 4"


def test_a_dense_layers_time_proves_nothing_about_sparsity():
    measured = c.measurement(layers=[c.layer_time("sparse", c.STEM, 1.0, 1.0, 1.0), c.layer_time("dense", c.STEM, 2.0, 2.0, 2.0)])
    assert set(rows(c.evidence(measure=measured))["stem"].steps.values()) == {Rung.NOT_APPLICABLE}


def test_a_dense_layer_that_went_sparse_all_the_same_keeps_that_fact():
    report = c.tactic_report(c.build("sparse", c.engine_layer(c.STEM)))
    stem = rows(c.evidence(tactics=report))["stem"]
    assert stem.steps[Step.SELECTED] is Rung.YES


def test_a_backend_without_sparse_kernels_has_rungs_4_to_6_not_applicable():
    body = rows(c.on_onnxruntime())["body"]
    assert [body.steps[step] for step in (Step.ELIGIBLE, Step.TIMED, Step.SELECTED)] == [Rung.NOT_APPLICABLE] * 3
    assert body.texts[Step.ELIGIBLE] == "onnxruntime has no sparse kernels"


def test_an_onnx_model_has_rungs_1_and_2_not_applicable():
    run = c.run(sections={"model": {"onnx": "model.onnx"}})
    body = rows(c.evidence(run=run, train=None, freeze=None))["body"]
    assert [body.steps[step] for step in LAYER_STEPS[:3]] == [Rung.NOT_APPLICABLE, Rung.NOT_APPLICABLE, Rung.YES]
    assert body.proven is Step.FASTER_LAYER


def test_the_gate_which_sees_no_run_json_knows_an_onnx_model_by_its_records():
    body = rows(c.evidence(run=None, train=None, freeze=None))["body"]
    assert [body.steps[step] for step in LAYER_STEPS[:2]] == [Rung.NOT_APPLICABLE] * 2
    assert rows(c.evidence(run=None, freeze=None))["body"].steps[Step.FROZEN] is Rung.UNKNOWN


def test_forced_sparsity_makes_rungs_1_and_2_not_applicable():
    report = c.tactic_report(c.build("sparse", sparsity="forced"))
    body = rows(c.evidence(tactics=report))["body"]
    assert [body.steps[step] for step in LAYER_STEPS[:2]] == [Rung.NOT_APPLICABLE] * 2


@pytest.mark.parametrize(
    ("gone", "steps"),
    [
        ("train", [Step.MASKED]),
        ("freeze", [Step.FROZEN]),
        ("tactics", [Step.ELIGIBLE, Step.TIMED, Step.SELECTED]),
        ("measure", [Step.FASTER_LAYER]),
    ],
)
def test_a_missing_record_reads_unknown_and_breaks_the_prefix(gone, steps):
    body = rows(c.evidence(**{gone: None}))["body"]
    for step in LAYER_STEPS:
        assert body.steps[step] is (Rung.UNKNOWN if step in steps else Rung.YES)
    assert body.missed is steps[0]
    assert body.above_gap == [step for step in LAYER_STEPS if LAYER_STEPS.index(step) > LAYER_STEPS.index(steps[-1])]
    assert body.texts[steps[0]]


def test_no_record_at_all_claims_nothing():
    engine, service = ladder.build(Evidence())
    assert (engine.of, service.of) == ("engine", "service")
    assert engine.steps == {Step.FASTER_ENGINE: Rung.UNKNOWN}
    assert service.steps == {Step.FASTER_REQUEST: Rung.UNKNOWN}


def test_regrowth_is_missed_at_rung_2_whatever_stands_above():
    layers = [replace(item, proof=Rung.NO, text="3 groups of body.weight grew back") for item in c.frozen().layers]
    body = rows(c.evidence(freeze=c.frozen(layers=layers)))["body"]
    assert (body.proven, body.missed) == (Step.MASKED, Step.FROZEN)
    assert body.texts[Step.FROZEN] == "3 groups of body.weight grew back"
    assert Step.SELECTED in body.above_gap


def test_only_a_complete_list_of_eligible_layers_denies_an_absent_layer():
    alone = c.build("sparse", c.engine_layer(c.BODY))
    assert rows(c.evidence(tactics=c.tactic_report(alone)))["tail"].steps[Step.ELIGIBLE] is Rung.NO
    counted = replace(alone, passes=[replace(alone.passes[0], eligible_declared=5)])
    assert rows(c.evidence(tactics=c.tactic_report(counted)))["tail"].steps[Step.ELIGIBLE] is Rung.UNKNOWN
    hidden = replace(alone, layers=[*alone.layers, replace(alone.layers[0], id="f", name="{ForeignNode[a...b]}", parts=[], onnx_nodes=[])])
    assert rows(c.evidence(tactics=c.tactic_report(hidden)))["tail"].steps[Step.ELIGIBLE] is Rung.UNKNOWN
    assert rows(c.evidence(tactics=c.tactic_report(replace(alone, passes=[]))))["tail"].steps[Step.ELIGIBLE] is Rung.UNKNOWN


def test_a_layer_in_several_engine_layers_is_selected_only_where_all_are():
    profiles = [c.engine_layer(c.BODY, profile=0), replace(c.engine_layer(c.BODY, selected=Rung.NO, profile=1), id="b [profile 1]")]
    body = rows(c.evidence(tactics=c.tactic_report(c.build("sparse", *profiles))))["body"]
    assert body.steps[Step.ELIGIBLE] is Rung.YES
    assert body.steps[Step.SELECTED] is Rung.NO


def test_disputed_stays_disputed():
    report = c.tactic_report(c.build("sparse", c.engine_layer(c.BODY, selected=Rung.DISPUTED)))
    body = rows(c.evidence(tactics=report))["body"]
    assert (body.steps[Step.SELECTED], body.missed) == (Rung.DISPUTED, Step.SELECTED)


@pytest.mark.parametrize(
    ("low", "high", "rung"), [(0.9, 0.99, Rung.YES), (0.9, 1.0, Rung.UNKNOWN), (0.99, 1.2, Rung.UNKNOWN), (1.0, 1.2, Rung.NO)]
)
def test_the_engine_is_faster_only_when_the_whole_interval_is(low, high, rung):
    measured = c.measurement(ratios=[c.ratio((low + high) / 2, low, high)])
    engine = rows(c.evidence(measure=measured))["engine batch=32"]
    assert engine.steps == {Step.FASTER_ENGINE: rung}


def test_a_control_that_leaves_out_1_makes_the_engine_unknown():
    measured = c.measurement(ratios=[c.ratio(0.8, 0.7, 0.9), c.ratio(0.95, 0.94, 0.96, over="sparse~a/a", control=True)])
    engine = rows(c.evidence(measure=measured))["engine batch=32"]
    assert engine.steps == {Step.FASTER_ENGINE: Rung.UNKNOWN}
    assert "leaves out 1" in engine.texts[Step.FASTER_ENGINE]


def test_simulated_times_prove_nothing():
    measured = c.measurement(conditions=replace(c.measurement().conditions, simulated="a replay of samples"))
    found = rows(c.evidence(measure=measured))
    assert found["engine batch=32"].steps[Step.FASTER_ENGINE] is Rung.UNKNOWN
    assert found["body"].steps[Step.FASTER_LAYER] is Rung.UNKNOWN


@pytest.mark.parametrize(("twin", "rung"), [((0.30, 0.31, 0.30), Rung.YES), ((0.40, 0.41, 0.40), Rung.UNKNOWN)])
def test_a_layer_whose_control_differs_as_well_is_unknown(twin, rung):
    times = [
        c.layer_time("sparse", c.BODY, 0.30, 0.31, 0.30),
        c.layer_time("twin", c.BODY, *twin),
        c.layer_time("dense", c.BODY, 0.4, 0.4, 0.4),
    ]
    evidence = replace(c.on_onnxruntime(), measure=c.measurement(layers=times))
    body = rows(evidence)["body"]
    assert body.steps[Step.FASTER_LAYER] is rung
    assert ("control" in body.texts[Step.FASTER_LAYER]) is (rung is Rung.UNKNOWN)
