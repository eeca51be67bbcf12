"""Budgets over layers and builds, and what is never released."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.api import judge
from pipeline.records.arms import ExportedLayer, OnnxArm, OnnxArms
from pipeline.records.artifact import Artifact
from pipeline.records.check import CheckedLayer, CheckedModel, CheckReport, CheckTotals, Target
from pipeline.records.engines import Engine, Engines
from pipeline.records.evidence import Evidence
from pipeline.records.frozen import FrozenLayer, FrozenModel
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, Source, Tactic, TacticLayer, TacticReport
from pipeline.verdict.layer_rules import matches

PLAN = Artifact(path="p", sha256="0" * 64, size_bytes=1)


def layer(name):
    return WeightedLayer(id=name, kind="Conv2d", onnx_nodes=[f"/{name}/Conv"])


def exported(**proofs):
    return Evidence(
        export=OnnxArms(arms=[], layers=[ExportedLayer(layer=layer(name), proof=proof, text="") for name, proof in proofs.items()])
    )


def checked(name, two_four, groups=8):
    violating = 0 if two_four or groups is None else 1
    return CheckedLayer(
        node=f"/{name}/Conv",
        graph="",
        op="Conv",
        weight="w",
        operand=1,
        shape=[8, 32],
        axis=1,
        dtype="float32",
        two_four=two_four,
        groups=groups,
        groups_violating=violating,
    )


def onnx_arm(arm, *layers):
    report = CheckReport(
        model=CheckedModel(path=f"{arm}.onnx", sha256="0" * 64),
        target=Target(),
        layers=list(layers),
        totals=CheckTotals(layers=len(layers), two_four=0, eligible=0),
    )
    return OnnxArm(arm=arm, model=PLAN, precision="fp32", opset=20, check=report)


def with_files(evidence, *arms):
    return msgspec.structs.replace(evidence, export=msgspec.structs.replace(evidence.export, arms=list(arms)))


def tactic_layer(name, selected, kernel="sm80_xmma_sparse_conv"):
    tactic = Tactic(name=kernel, kind="sparse", id=None, runner=None, how="layer-info") if kernel else None
    return TacticLayer(id=name, name=name, onnx_nodes=[f"/{name}/Conv"], selected=selected, tactic=tactic)


def built(*builds, sparsity="enabled", command=None, kernel="sm80_xmma_sparse_conv", kinds=("log",), options=None):
    """Evidence of TensorRT builds of the arm `sparse`, each a mapping of layer to its rung `selected`."""
    report = TacticReport(
        sources=[Source(path="f", sha256=None, kind=kind, producer=None) for kind in kinds],
        builds=[
            Build(
                id=at,
                arm="sparse" if at == 0 else f"sparse#{at + 1}",
                sources=list(range(len(kinds))),
                sparsity=sparsity,
                command=command,
                layers=[tactic_layer(name, rung, kernel) for name, rung in build.items()],
            )
            for at, build in enumerate(builds)
        ],
    )
    engines = Engines(
        backend="tensorrt", sparse_kernels=True, engines=[Engine(arm="sparse", onnx_arm="sparse", plan=PLAN, options=options or {})]
    )
    return Evidence(tactics=report, build=engines)


def only(evidence, rule):
    rows = judge(evidence, [rule]).rules
    assert len(rows) == 1
    return rows[0]


YES, NO, UNKNOWN, DISPUTED = Rung.YES, Rung.NO, Rung.UNKNOWN, Rung.DISPUTED
SELECTED = {"kind": "rungs", "rung": "selected"}


@pytest.mark.parametrize(
    ("proofs", "rule", "outcome", "words"),
    [
        ({"a": YES, "b": YES}, {"at_least": 2}, "pass", "2 layers"),
        ({"a": YES, "b": NO}, {"at_least": 2}, "fail", "1 of 2"),
        ({"a": YES, "b": UNKNOWN}, {"at_least": 2}, "inconclusive", "1 unknown"),
        ({"a": YES, "b": UNKNOWN}, {"at_least": 3}, "fail", "1 of 3"),
        ({"a": YES, "b": NO}, {"layers": ["a"]}, "pass", "a among them"),
        ({"a": YES, "b": NO}, {"layers": ["/a/*"]}, "pass", "a among them"),
        ({"a": YES, "b": NO}, {"layers": ["*"]}, "fail", "b not exported"),
        ({"a": YES, "b": UNKNOWN}, {"layers": ["b"]}, "inconclusive", "unknown"),
        ({"a": YES}, {"layers": ["gone.*"]}, "fail", "no layer is called gone.*"),
    ],
)
def test_layers_on_a_rung(proofs, rule, outcome, words):
    row = only(exported(**proofs), {"kind": "rungs", "rung": "exported", **rule})
    assert row.outcome == outcome
    assert words in row.why


def test_all_means_the_masked_layers():
    assert only(exported(a=YES, b=YES), {"kind": "rungs", "rung": "exported", "at_least": "all"}).budget == 2
    assert only(Evidence(), {"kind": "rungs", "rung": "exported", "at_least": "all"}).outcome == "inconclusive"


EXPORTED = {"kind": "rungs", "rung": "exported", "at_least": "all"}


def test_an_arm_of_another_file_is_judged_by_its_own_weights():
    sparse = onnx_arm("sparse", checked("a", True), checked("b", True))
    two = with_files(exported(a=YES, b=YES), sparse, onnx_arm("dense", checked("a", True), checked("b", False)))
    for arm in ("sparse", "sparse#2", "twin"):
        assert only(two, {**EXPORTED, "arm": arm}).outcome == "pass"
    row = only(two, {**EXPORTED, "arm": "dense"})
    assert (row.outcome, row.value, row.why) == ("fail", 1, "b not exported")
    assert only(two, {**EXPORTED, "arm": "dense", "at_least": 1}).outcome == "pass"
    assert only(two, {**EXPORTED, "arm": "ghost"}).outcome == "inconclusive"
    engines = [Engine(arm="sparse", onnx_arm="dense", plan=PLAN)]
    swapped = msgspec.structs.replace(two, build=Engines(backend="onnxruntime", sparse_kernels=False, engines=engines))
    assert only(swapped, EXPORTED).outcome == "fail"
    unchecked = with_files(two, sparse)
    assert only(unchecked, {**EXPORTED, "arm": "dense"}).outcome == "inconclusive"
    nameless = with_files(two, sparse, onnx_arm("dense", checked("a", True)))
    assert only(nameless, {**EXPORTED, "arm": "dense"}).outcome == "inconclusive"


@pytest.mark.parametrize("arm", ["dense", "twin"])
def test_frozen_zeros_are_those_of_the_sparse_file(arm):
    frozen = FrozenModel(
        sparse=PLAN,
        dense=PLAN,
        mask_digest="0" * 64,
        weights_digest="0" * 64,
        max_difference=0.0,
        layers=[FrozenLayer(layer=layer("a"), proof=YES, zero_fraction=0.5, text="")],
    )
    row = only(Evidence(freeze=frozen), {"kind": "rungs", "rung": "frozen", "at_least": 1, "arm": arm})
    assert row.outcome == ("fail" if arm == "dense" else "pass")


@pytest.mark.parametrize(
    ("other", "proof", "outcome", "wanted"),
    [
        (checked("b", False), NO, "fail", 2),
        (checked("b", True), YES, "pass", 2),
        (checked("b", False, groups=None), NO, "pass", 1),
        (checked("b", None, groups=None), UNKNOWN, "pass", 1),
    ],
)
def test_without_training_all_means_what_could_be_2_4(other, proof, outcome, wanted):
    row = only(with_files(exported(a=YES, b=proof), onnx_arm("sparse", checked("a", True), other)), EXPORTED)
    assert (row.outcome, row.budget) == (outcome, wanted)


ALL_SELECTED = {"kind": "rungs", "rung": "selected", "at_least": "all"}


def engine_of(engine, **proofs):
    """A model of layers with a rung 3 each, and one build of it."""
    return msgspec.structs.replace(built(engine), export=exported(**proofs).export)


@pytest.mark.parametrize(
    ("engine", "outcome", "words"),
    [
        ({"a": YES, "b": YES}, "pass", "2 layers are selected"),
        ({"a": YES, "other": YES}, "inconclusive", "in no engine layer: b"),
        ({"a": YES, "a2": YES, "a3": YES}, "inconclusive", "in no engine layer: b"),
        ({"a": YES, "b": NO, "other": YES}, "fail", "b not selected"),
        ({"a": YES, "b": UNKNOWN, "other": YES}, "inconclusive", "1 are selected, 1 unknown (b)"),
        ({"a": YES, "b": DISPUTED}, "inconclusive", "sources disagree on b"),
    ],
)
def test_a_layer_that_vanished_from_the_engine_does_not_hide_behind_the_number_of_the_others(engine, outcome, words):
    row = only(engine_of(engine, a=YES, b=YES), ALL_SELECTED)
    assert row.outcome == outcome and words in row.why
    assert row.budget == 2 and row.text == "selected model layers of sparse: at least all"


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([YES, NO, UNKNOWN, DISPUTED])), st.sets(st.sampled_from("abc"), min_size=1)
)
def test_all_passes_only_where_each_layer_of_the_model_is_selected_in_the_engine(engine, model):
    row = only(engine_of(engine, **dict.fromkeys(model, YES)), ALL_SELECTED)
    assert (row.outcome == "pass") == all(engine.get(name) is YES for name in model)


def test_a_layer_in_two_engine_layers_stands_where_the_worse_of_them_does():
    evidence = engine_of({"a": YES, "copy": NO}, a=YES)
    (build,) = evidence.tactics.builds
    both = [msgspec.structs.replace(item, onnx_nodes=["/a/Conv"]) for item in build.layers]
    report = msgspec.structs.replace(evidence.tactics, builds=[msgspec.structs.replace(build, layers=both)])
    assert only(msgspec.structs.replace(evidence, tactics=report), ALL_SELECTED).outcome == "fail"


def with_layer(evidence, name, nodes, selected):
    (build,) = evidence.tactics.builds
    more = TacticLayer(id=name, name=name, parts=name.split(" || "), onnx_nodes=nodes, selected=selected)
    builds = [msgspec.structs.replace(build, layers=[*build.layers, more])]
    return msgspec.structs.replace(evidence, tactics=msgspec.structs.replace(evidence.tactics, builds=builds))


@pytest.mark.parametrize("rule", [ALL_SELECTED, {**SELECTED, "layers": ["*b*"]}])
def test_a_reformat_beside_a_selected_layer_does_not_fail_it(rule):
    """Its name ends in its neighbour's, so that it is joined to a node of the neighbour; it computes nothing and is never selected."""
    name = "Reformatting CopyNode for Output Tensor 0 to /a/Conv || /b/Conv"
    evidence = with_layer(engine_of({"a": YES, "b": YES}, a=YES, b=YES), name, ["/b/Conv"], NO)
    assert only(evidence, rule).outcome == "pass"


@pytest.mark.parametrize(("selected", "outcome"), [(YES, "inconclusive"), (UNKNOWN, "inconclusive"), (NO, "fail")])
def test_a_region_that_is_selected_as_a_whole_does_not_pass_for_its_nodes(selected, outcome):
    evidence = with_layer(engine_of({"a": YES}, a=YES, b=YES), "{ForeignNode[/b/Conv.../z]}", ["/b/Conv", "/z"], selected)
    assert only(evidence, ALL_SELECTED).outcome == outcome


def test_a_number_counts_engine_layers_and_says_so():
    row = only(engine_of({"a": YES, "other": YES}, a=YES, b=YES), {**ALL_SELECTED, "at_least": 2})
    assert (row.outcome, row.text) == ("pass", "selected engine layers of sparse: at least 2")


def test_all_of_no_layers_does_not_pass():
    nothing = with_files(exported(b=NO), onnx_arm("sparse", checked("b", False, groups=None)))
    assert only(nothing, EXPORTED).outcome == "inconclusive"


def test_a_node_with_a_dense_operand_is_not_exported():
    both = exported(a=NO)
    twice = msgspec.structs.replace(both.export, layers=[*both.export.layers, *exported(a=YES).export.layers])
    assert only(Evidence(export=twice), {**EXPORTED, "at_least": 1}).outcome == "fail"


def test_a_disputed_layer_decides_nothing():
    row = only(built({"a": YES, "b": DISPUTED}), {**SELECTED, "at_least": 1})
    assert row.outcome == "inconclusive"
    assert "disagree on b" in row.why
    assert only(built({"a": YES, "b": DISPUTED}), {**SELECTED, "layers": ["a"]}).outcome == "pass"


def test_rungs_of_tactics_do_not_apply_without_sparse_kernels():
    evidence = built({"a": YES})
    cpu = msgspec.structs.replace(evidence, build=msgspec.structs.replace(evidence.build, backend="onnxruntime", sparse_kernels=False))
    row = only(cpu, {**SELECTED, "at_least": 1})
    assert row.outcome == "inconclusive"
    assert "not applicable" in row.why


def test_names_alone_prove_no_selection():
    evidence = built({"a": YES}, kernel=None, kinds=("layer-info",))
    assert "names only" in only(evidence, {**SELECTED, "at_least": 1}).why


@pytest.mark.parametrize(
    ("builds", "rule", "outcome"),
    [
        ([{"a": YES}, {"a": YES}, {"a": YES}], {}, "pass"),
        ([{"a": YES}, {"a": YES}, {"a": NO}], {"builds": 2}, "pass"),
        ([{"a": YES}, {"a": YES}, {"a": NO}], {}, "fail"),
        ([{"a": YES}, {"a": YES}, {"a": UNKNOWN}], {}, "inconclusive"),
        ([{"a": YES, "b": NO}, {"a": YES, "b": YES}], {}, "fail"),
        ([{"a": YES, "b": NO}, {"a": YES, "b": YES}], {"layers": ["a"]}, "pass"),
        ([{"a": YES}], {}, "inconclusive"),
        ([{"a": YES}, {"a": YES}], {"builds": 3}, "inconclusive"),
        ([{"a": NO}, {"a": NO}], {}, "fail"),
    ],
)
def test_selection_over_builds(builds, rule, outcome):
    assert only(built(*builds), {"kind": "stability", **rule}).outcome == outcome


@pytest.mark.parametrize(
    ("change", "ground"),
    [
        ({"sparsity": "forced"}, "forced-sparsity"),
        ({"command": "trtexec --onnx=m.onnx --sparsity=force"}, "forced-sparsity"),
        ({"command": "trtexec --onnx=m.onnx --stripWeights"}, "refitted-plan"),
        ({"options": {"refit": True}}, "refitted-plan"),
        ({"options": {"strip_plan": True}}, "refitted-plan"),
    ],
)
def test_what_is_never_released(change, ground):
    verdict = judge(built({"a": YES}, **change), [{**SELECTED, "at_least": 1}])
    assert verdict.outcome == "fail"
    assert verdict.rules[-1].id == f"release:sparse:{ground}"
    assert judge(built({"a": YES}), [{**SELECTED, "at_least": 1}]).outcome == "pass"
    rebuilt = judge(built({"a": YES}, **change), [{**SELECTED, "arm": "sparse#2", "at_least": 1}])
    assert ground in {rule.id.rpartition(":")[2] for rule in rebuilt.rules}


@given(st.text(max_size=20), st.text(alphabet="ab[]*?!-", max_size=8))
def test_brackets_in_patterns_are_literal(name, pattern):
    def reference(text, glob):
        if not glob:
            return not text
        if glob[0] == "*":
            return any(reference(text[i:], glob[1:]) for i in range(len(text) + 1))
        return bool(text) and (glob[0] == "?" or glob[0] == text[0]) and reference(text[1:], glob[1:])

    assert matches(name, pattern) == reference(name, pattern)
    assert matches(pattern, pattern)
