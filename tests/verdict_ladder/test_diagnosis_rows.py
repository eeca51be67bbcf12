"""Every row of the diagnosis table is produced by records that show it, and not by records that do not."""

from __future__ import annotations

import crafted_run as c
import pytest
from msgspec.structs import replace

from pipeline import codes
from pipeline.records.arms import OnnxArm
from pipeline.records.check import CheckedLayer, CheckedModel, CheckReport, CheckTotals, Outcome, RuleOutcome, Target
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import EngineParity, Size
from pipeline.records.rung import Rung
from pipeline.records.tactics import Conflict
from pipeline.verdict.diagnosis import SIGNS, diagnose


def found(evidence):
    return {finding.id: finding for finding in diagnose(evidence)}


def build(*layers, **more):
    return c.evidence(tactics=c.tactic_report(c.build("sparse", *layers, **more)))


def checked(**more):
    """A run whose sparse ONNX arm holds one checked layer."""
    layer = CheckedLayer(
        node="/body/Conv", graph="", op="Conv", weight="w", operand=1, shape=[256, 256, 3, 3], axis=1, dtype="float16", two_four=True
    )
    report = CheckReport(
        model=CheckedModel(path="sparse.onnx", sha256="0"),
        target=Target(),
        layers=[replace(layer, **more)],
        totals=CheckTotals(layers=1, two_four=1, eligible=0),
    )
    arm = OnnxArm(arm="sparse", model=c.artifact(), precision="fp16", opset=20, check=report)
    return c.evidence(export=c.exported(arms=[arm]))


def frozen_layer(**more):
    freeze = c.frozen()
    return c.evidence(freeze=replace(freeze, layers=[replace(freeze.layers[0], **more), freeze.layers[1]]))


def parity(**more):
    return c.evidence(export=c.exported(parity=[replace(c.exported().parity[0], **more)]))


def measured(**more):
    return c.evidence(measure=c.measurement(**more))


def slices(dense, sparse, overall=(0.975, 0.97)):
    return measured(quality={"dense": [c.quality("dense", overall[0], dense)], "sparse": [c.quality("sparse", overall[1], sparse)]})


def rebuilt(first, second):
    timings = [c.timing("sparse", first), c.timing("sparse#2", second), c.timing("dense", 1.0)]
    return measured(timings=timings, ratios=[c.ratio(0.97, 0.96, 0.98)])


def twin(*layers, **more):
    return c.evidence(tactics=c.tactic_report(c.build("sparse"), c.build("twin", *layers, number=1, **more)))


DENSE_BODY = c.engine_layer(c.BODY, selected=Rung.NO)
DENSE_TAIL = c.dense_won()
REGROUPED = replace(DENSE_BODY, id="x", name="/body/Conv", parts=["/body/Conv"], onnx_nodes=["/body/Conv"])
NAMES_ONLY = replace(c.engine_layer(c.BODY), tactic=None, candidates=None)
FAILED_RULE = [RuleOutcome(id="SG105", outcome=Outcome.FAIL, text="grouped convolutions are not considered")]
INT8 = {"dtype": "float32", "quantized": "int8", "two_four": True, "eligible": Rung.YES}


ENGINE_PARITY = EngineParity(engine="sparse", against="twin", profile=0, shape="opt", probe="random", max_rel=0.5, passed=False)
OTHER_SHAPE = measured(timings=[c.timing("sparse", 0.9, inputs={"x": [1, 256]})])


def with_selection(evidence, *layers):
    return replace(evidence, tactics=c.tactic_report(c.build("sparse", *layers)))


CASES = {
    "SG501": [
        (frozen_layer(proof=Rung.NO, text="3 groups grew back"), "3 groups grew back"),
        (c.evidence(freeze=c.frozen(remasked=["body.weight"])), "body.weight had grown back"),
    ],
    "SG502": [
        (c.evidence(freeze=c.frozen(max_difference=0.25)), "0.25"),
        (parity(passed=False, max_abs=0.5), "worst difference 0.5"),
        (parity(rows_identical=False), "equal rows gave other outputs"),
        (parity(repeatable=False), "the same call gave other outputs"),
        (measured(parity=[ENGINE_PARITY]), "sparse against twin at opt of profile 0 (random inputs): 0.5 of the largest output"),
    ],
    "SG503": [(twin(c.engine_layer(c.BODY)), c.SPARSE_KERNEL)],
    "SG504": [(build(conflicts=[Conflict(code="count-and-list-disagree", layers=["a"], text="Chose 0, list of 2")]), "Chose 0, list of 2")],
    "SG505": [(measured(conditions=replace(c.measurement().conditions, simulated="a replay")), "a replay")],
    "SG506": [(measured(ratios=[c.ratio(0.95, 0.94, 0.96, over="sparse~a/a", control=True)]), "0.950x [0.940, 0.960]")],
    "SG507": [(slices({"3": 0.95, "8": 0.975}, {"3": 0.6, "8": 0.975}), "class=3: 0.95 to 0.6 (n=40)")],
    "SG508": [(checked(two_four=False, zero_fraction=0.7, groups_violating=12, two_four_on_other_axes=[0]), "2:4 along axis 0")],
    "SG509": [
        (checked(eligible=Rung.NO, rules=FAILED_RULE), "SG105 grouped convolutions"),
        (build(machine={"compute_capability": "7.5"}), "compute capability 7.5"),
        (build(precision=["FP32"]), "FP32 alone"),
    ],
    "SG510": [
        (build(NAMES_ONLY, passes=[], log_level_seen=None), "no eligible or selected list"),
        (build(replace(DENSE_TAIL, best=None), log_level_seen="info"), "no timed tactics at log level info"),
    ],
    "SG511": [(build(DENSE_TAIL), "sparse 0.051 ms, dense 0.043 ms")],
    "SG512": [(with_selection(checked(**INT8), DENSE_BODY), "/body/Conv reads int8")],
    "SG513": [(with_selection(c.evidence(), c.engine_layer(c.STEM, selected=Rung.NO)), "16 outputs of 9 weights each")],
    "SG514": [(build(c.engine_layer(c.BODY, timed=Rung.UNKNOWN, cache="repeat")), "equal to an earlier layer")],
    "SG515": [
        (twin(REGROUPED), "fused otherwise in the twin"),
        (twin(replace(DENSE_BODY, region="myelin")), "region cask, in the twin myelin"),
    ],
    "SG516": [(OTHER_SHAPE, "x ran at [1, 256], profile 0 was tuned at [32, 256]")],
    "SG517": [
        (measured(ratios=[c.ratio(1.0, 0.98, 1.02)]), "1 groups of layers are faster at batch=32"),
        (measured(ratios=[c.ratio(0.8, 0.79, 0.81), c.ratio(1.0, 0.99, 1.01, metric="request")]), "p50 request"),
    ],
    "SG518": [(rebuilt(0.97, 1.02), "a gain of 3.0%, 2 builds of the sparse arm spread over 5.2%")],
    "SG519": [(c.evidence(), "file: sparse 4321 bytes, dense 4321 bytes")],
    "SG520": [(c.on_onnxruntime(), "onnxruntime has no sparse kernels")],
}

WITHOUT = {
    "SG501": [c.evidence(), c.evidence(freeze=None)],
    "SG502": [c.evidence(), c.evidence(export=None, freeze=None), measured(parity=[replace(ENGINE_PARITY, passed=True)])],
    "SG503": [twin(DENSE_BODY), c.on_onnxruntime()],
    "SG504": [c.evidence()],
    "SG505": [c.evidence(), c.evidence(measure=None)],
    "SG506": [measured(ratios=[c.ratio(1.0, 0.99, 1.01, over="sparse~a/a", control=True)]), measured(ratios=[c.ratio(0.95, 0.94, 0.96)])],
    "SG507": [
        slices({"3": 0.95, "8": 0.975}, {"3": 0.925, "8": 0.975}),  # within the noise of 40 samples
        slices({"3": 0.95}, {"3": 0.6}, overall=(0.975, 0.8)),  # the average does not hold
        slices({"3": 0.6}, {"3": 0.95}),
    ],
    "SG508": [checked(), checked(two_four=False, zero_fraction=0.01, groups_violating=9), checked(two_four=None)],
    "SG509": [
        checked(eligible=Rung.UNKNOWN, rules=FAILED_RULE),
        checked(two_four=False, eligible=Rung.NO, rules=FAILED_RULE),
        build(machine={"compute_capability": "8.6"}, precision=["FP32", "FP16"]),
        build(machine={"compute_capability": "12.0"}, typing="strong", precision=["FP32"]),
    ],
    "SG510": [c.evidence(), build(c.engine_layer(c.BODY), log_level_seen="info"), c.on_onnxruntime()],
    "SG511": [build(c.engine_layer(c.BODY)), build(c.engine_layer(c.BODY, eligible=Rung.NO, selected=Rung.NO))],
    "SG512": [with_selection(checked(), DENSE_BODY), with_selection(checked(**INT8), c.engine_layer(c.BODY))],
    "SG513": [build(DENSE_BODY), with_selection(c.evidence(), c.engine_layer(c.STEM))],
    "SG514": [c.evidence(), build(c.engine_layer(c.BODY, cache="timed"))],
    "SG515": [c.evidence(), twin(DENSE_BODY), twin(NAMES_ONLY), c.evidence(tactics=None)],
    "SG516": [
        c.evidence(),
        replace(c.on_onnxruntime(), measure=OTHER_SHAPE.measure),
    ],
    "SG517": [c.evidence(), measured(layers=[], ratios=[c.ratio(1.0, 0.98, 1.02)])],
    "SG518": [rebuilt(0.97, 0.975), measured(ratios=[c.ratio(1.1, 1.0, 1.2)]), c.evidence()],
    "SG519": [
        measured(sizes=[Size(arm="sparse", name="packed", bytes=9, question=""), Size(arm="dense", name="packed", bytes=16, question="")]),
        c.evidence(export=None),
    ],
    "SG520": [c.evidence(), c.evidence(tactics=None)],
}


def test_every_row_has_a_sign_and_both_kinds_of_case():
    rows = [row.id for row in codes.DIAGNOSES]
    assert list(SIGNS) == list(CASES) == list(WITHOUT) == rows


@pytest.mark.parametrize(("row", "evidence", "words"), [(row, *case) for row, cases in CASES.items() for case in cases])
def test_the_row_is_found_with_its_evidence_and_a_next_command(row, evidence, words):
    finding = found(evidence)[row]
    assert any(words in line for line in finding.evidence), finding.evidence
    assert all(line.startswith(("freeze: ", "export: ", "tactics: ", "measure: ")) for line in finding.evidence)
    assert finding.observation == codes.get(row).title
    assert "{" not in finding.next


@pytest.mark.parametrize(("row", "evidence"), [(row, case) for row, cases in WITHOUT.items() for case in cases])
def test_the_row_is_not_found_without_its_observation(row, evidence):
    assert row not in found(evidence)


def test_nothing_is_found_in_nothing():
    assert diagnose(Evidence()) == []


def test_the_gravest_comes_first():
    evidence = replace(frozen_layer(proof=Rung.NO, text="x"), measure=measured(ratios=[c.ratio(1.0, 0.98, 1.02)]).measure)
    ids = [finding.id for finding in diagnose(evidence)]
    assert ids == sorted(ids)
    assert ids[0] == "SG501"
