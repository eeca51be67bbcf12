"""`diff` finds exactly the changes that were made, through fusions, splits and new names, over random networks."""

from __future__ import annotations

import crafted_run as c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.records.difference import ChangeKind as Kind
from pipeline.records.rung import Rung
from pipeline.records.tactics import Best, BestTime, Build, Tactic, TacticLayer
from pipeline.verdict.diff import TIME_CHANGE, diff_builds, precision
from pipeline.verdict.stability import stability

HALF, INT8, HALF32 = "Half(64,8:2,8,1)", "Int8(64,8:4,8,1)", "Half(64,1:4,8,1)"


def engine_layer(nodes, ms, *, name=None, kind="dense", kernel="k1", form=HALF, named_by="onnx_nodes"):
    rung = Rung.YES if kind == "sparse" else Rung.NO
    best = Best(sparse=BestTime(ms=1, format=form), dense=BestTime(ms=1, format=form), comparable=True)
    tactic = Tactic(name=f"{kind}_{kernel}", kind=kind, id=None, runner=None, how="engine-dump")
    name = name or " + ".join(nodes)
    held = {named_by: list(nodes)}
    return TacticLayer(id=name, name=name, eligible=Rung.YES, selected=rung, tactic=tactic, best=best, profile_ms=ms, **held)


def reformat(layer, ms):
    name = f"Reformatting CopyNode for Input Tensor 0 to {layer.name}"
    return TacticLayer(id=name, name=name, profile_ms=ms)


def flip(kind):
    return "dense" if kind == "sparse" else "sparse"


def remake(mine, ms, **changes):
    kind = changes.pop("kind", mine.tactic.kind)
    return engine_layer(mine.onnx_nodes or mine.parts, ms(), kind=kind, **changes)


EDITS = {
    "same": lambda mine, held, ms: ([mine], [replace(mine, profile_ms=ms())], set()),
    "rename": lambda mine, held, ms: ([mine], [remake(mine, ms, name=f"renamed {held[0]}")], {Kind.RENAMED}),
    "tactic": lambda mine, held, ms: ([mine], [remake(mine, ms, kernel="k2")], {Kind.TACTIC}),
    "selection": lambda mine, held, ms: ([mine], [remake(mine, ms, kind=flip(mine.tactic.kind))], {Kind.SELECTION, Kind.TACTIC}),
    "format": lambda mine, held, ms: ([mine], [remake(mine, ms, form=HALF32)], {Kind.FORMAT}),
    "precision": lambda mine, held, ms: ([mine], [remake(mine, ms, form=INT8)], {Kind.FORMAT, Kind.PRECISION}),
    "split": lambda mine, held, ms: ([mine], [engine_layer(n, ms(), kind=mine.tactic.kind) for n in (held[:1], held[1:])], {Kind.SPLIT}),
    "merge": lambda mine, held, ms: (
        [engine_layer(n, ms(), named_by="parts") for n in (held[:1], held[1:])],
        [engine_layer(held, ms(), kind="sparse")],
        {Kind.MERGED, Kind.SELECTION},
    ),
    "regroup": lambda mine, held, ms: (
        [engine_layer(n, ms()) for n in (held[:2], held[2:])],
        [engine_layer(n, ms(), named_by="parts") for n in (held[:1], held[1:])],
        {Kind.REGROUPED},
    ),
    "gone": lambda mine, held, ms: ([mine], [], {Kind.GONE}),
    "new": lambda mine, held, ms: ([], [mine], {Kind.NEW}),
    "reformat": lambda mine, held, ms: ([mine], [mine, reformat(mine, ms())], {Kind.REFORMATS}),
}


@st.composite
def networks(draw):
    """Two builds of one network, and for every group of nodes the kinds of change that were made and both times."""

    def ms():
        return draw(st.integers(1, 4000)) / 1000

    a, b, truth = [engine_layer(["/anchor"], 1.0)], [engine_layer(["/anchor"], 1.0)], {frozenset(["/anchor"]): (set(), 1.0, 1.0)}
    for number, edit in enumerate(draw(st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=12))):
        held = [f"/n{number}.{part}/Op" for part in range(draw(st.integers(3, 5)))]
        named_by = draw(st.sampled_from(["onnx_nodes", "parts"]))
        mine = engine_layer(held, ms(), kind=draw(st.sampled_from(["sparse", "dense"])), named_by=named_by)
        before, after, kinds = EDITS[edit](mine, held, ms)
        a_ms, b_ms = sum(item.profile_ms for item in before), sum(item.profile_ms for item in after)
        if before and after and abs(b_ms - a_ms) > TIME_CHANGE * max(a_ms, b_ms):
            kinds = kinds | {Kind.TIME}
        truth[frozenset(held)] = (kinds, a_ms if before else None, b_ms if after else None)
        a += before
        b += after
    return a, list(draw(st.permutations(b))), truth


@settings(max_examples=100, deadline=None)
@given(networks())
def test_exactly_the_changes_that_were_made_are_found(network):
    a, b, truth = network
    report = diff_builds(Build(id=0, layers=a), Build(id=1, layers=b))
    expected = {nodes: change for nodes, change in truth.items() if change[0]}
    assert {frozenset(change.nodes): set(change.kinds) for change in report.changes} == {n: kinds for n, (kinds, _, _) in expected.items()}
    for change in report.changes:
        _, a_ms, b_ms = truth[frozenset(change.nodes)]
        assert (change.a_ms, change.b_ms) == (pytest.approx(a_ms), pytest.approx(b_ms))
    assert report.same == len(truth) - len(expected)
    deltas = [abs(change.delta_ms) for change in report.changes if change.delta_ms is not None]
    assert deltas == sorted(deltas, reverse=True)
    assert all(change.delta_ms is None for change in report.changes[len(deltas) :])


@settings(max_examples=25, deadline=None)
@given(networks())
def test_a_build_does_not_differ_from_itself(network):
    a, _, _ = network
    assert diff_builds(Build(id=0, layers=a), Build(id=1, layers=a)).changes == []


@settings(max_examples=25, deadline=None)
@given(networks())
def test_swapping_the_sides_mirrors_the_changes(network):
    a, b, _ = network
    there, back = (diff_builds(Build(id=0, layers=x), Build(id=1, layers=y)) for x, y in ((a, b), (b, a)))
    mirror = {Kind.NEW: Kind.GONE, Kind.GONE: Kind.NEW, Kind.SPLIT: Kind.MERGED, Kind.MERGED: Kind.SPLIT}
    turned = {tuple(change.nodes): {mirror.get(kind, kind) for kind in change.kinds} for change in back.changes}
    assert {tuple(change.nodes): set(change.kinds) for change in there.changes} == turned


def test_what_one_log_does_not_show_is_no_change():
    mine = engine_layer(["/a"], 1.0)
    silent = replace(mine, tactic=None, best=None, selected=Rung.UNKNOWN, eligible=Rung.UNKNOWN, region=None)
    assert diff_builds(Build(id=0, layers=[mine]), Build(id=1, layers=[silent])).changes == []


def test_a_log_with_names_alone_matches_one_with_metadata_of_some_of_the_nodes():
    name = "stage/Conv + PWN(PWN(stage.act/Sigmoid), PWN(stage.act/Mul))"
    bare = engine_layer([name], 1.0, name=name, named_by="parts")
    listed = replace(bare, onnx_nodes=["stage/Conv"])
    dense = [replace(layer, profile=1, name=f"{layer.name} [profile 1]") for layer in (bare, listed)]
    for a, b in (([bare, dense[0]], [dense[1], listed]), ([listed, dense[1]], [bare, dense[0]])):
        report = diff_builds(Build(id=0, layers=a), Build(id=1, layers=b))
        assert (report.changes, report.same) == ([], 2)


def test_names_match_nothing_where_both_logs_have_metadata():
    a, b = (Build(id=0, layers=[engine_layer(["/same"], 1.0), engine_layer([node], 1.0, name="x")]) for node in ("/a", "/b"))
    assert {tuple(change.nodes): change.kinds for change in diff_builds(a, b).changes} == {("/a",): [Kind.GONE], ("/b",): [Kind.NEW]}


def test_a_list_of_eligible_layers_does_not_make_the_others_gone():
    whole = Build(id=0, layers=[engine_layer(["/a"], 1.0), engine_layer(["/b"], 1.0)])
    listed = replace(engine_layer(["/a"], None), tactic=None, best=None)
    report = diff_builds(whole, Build(id=1, layers=[listed]))
    assert ([(change.kinds, change.nodes) for change in report.changes], report.same) == ([([Kind.HIDDEN_IN_B], ["/b"])], 1)
    assert "shows some of its layers only" in report.notes[0]
    never = replace(whole.layers[1], eligible=Rung.NO)
    assert diff_builds(replace(whole, layers=[whole.layers[0], never]), Build(id=1, layers=[listed])).changes == []


@pytest.mark.parametrize(("turned", "kind", "name"), [(False, Kind.HIDDEN_IN_B, "b.log"), (True, Kind.HIDDEN_IN_A, "a.log")])
def test_a_sparse_layer_that_one_log_does_not_tell_of_is_listed_and_comes_next(turned, kind, name):
    def listed(*nodes, selected=Rung.YES):
        layers = [replace(engine_layer([node], None, kind="sparse"), tactic=None, best=None, selected=selected) for node in nodes]
        return Build(id=0, layers=layers)

    for most, least in ((listed("/a", "/b"), listed("/b")), (listed("/a"), listed("/a", selected=Rung.UNKNOWN)), (listed("/a"), listed())):
        a, b = (least, most) if turned else (most, least)
        report = diff_builds(a, b, names=("a.log", "b.log"))
        first = report.changes[0]
        assert (first.kinds, first.nodes, (first.a or first.b)[0].layer) == ([kind], ["/a"], "/a")
        assert report.next.startswith(f"see what became of /a, of which {name} does not tell")


def test_a_failed_build_comes_before_any_layer():
    whole = Build(id=0, layers=[engine_layer(["/a"], 1.0)], result="passed")
    report = diff_builds(whole, replace(whole, result="failed"), names=("a.log", "b.log"))
    assert (report.a_totals.result, report.b_totals.result) == ("passed", "failed")
    assert report.next.startswith("see why b.log failed")


def test_profiles_are_compared_each_with_its_own():
    first = engine_layer(["/a"], 1.0, kind="sparse")
    second = replace(first, id="2", name="/a [profile 1]", profile=1, onnx_nodes=["/a"])
    dense = replace(second, selected=Rung.NO, tactic=replace(second.tactic, kind="dense"))
    report = diff_builds(Build(id=0, layers=[first, second]), Build(id=1, layers=[first, dense]))
    assert [(change.kinds, change.b[0].layer) for change in report.changes] == [([Kind.SELECTION], "/a [profile 1]")]


def test_environment_differences_are_named_and_autotuner_times_are_labelled():
    old = c.build("sparse", replace(c.engine_layer(c.BODY), tuned_ms=0.3), tensorrt="8.6.1", machine={"gpu": "A"})
    new = c.build("sparse", replace(c.dense_won(c.BODY), tuned_ms=0.2), machine={"gpu": "B"})
    report = diff_builds(old, new, names=("old.log", "new.log"))
    assert {(fact.name, fact.a, fact.b) for fact in report.environment} == {("TensorRT", "8.6.1", "10.3.0"), ("machine: gpu", "A", "B")}
    assert report.times == "tuner"
    assert "no layer times" in report.notes[-1]
    assert report.next == f"see why {new.layers[0].name} went dense: sparsegate tactics new.log"


@pytest.mark.parametrize(("form", "name"), [(HALF, "fp16"), (INT8, "int8"), ("BFloat16(1)", "bf16"), ("Odd(1)", None), (None, None)])
def test_precision_is_the_first_tensors_type(form, name):
    assert precision(form) == name


def test_stability_counts_selections_and_spreads_times_over_builds():
    def one(kind, sparse_ms, name):
        layer = engine_layer(["/a", "/b"], 1.0, kind=kind, name=name)
        best = replace(layer.best, sparse=BestTime(ms=sparse_ms, format=HALF))
        return Build(id=0, layers=[replace(layer, best=best), engine_layer(["/z"], 1)])

    report = stability([one("sparse", 1.0, "x"), one("dense", 1.2, "y"), one("sparse", 0.9, "z")], ["1", "2", "3"])
    first, second = report.layers
    assert (first.selected, first.dense, first.unknown) == (2, 1, 0)
    assert (first.sparse_ms.low, first.sparse_ms.high, first.sparse_ms.n) == (0.9, 1.2, 3)
    assert (second.selected, second.dense, report.changing) == (0, 3, 1)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["sparse", "dense", "unknown"]), min_size=3, max_size=3), min_size=2, max_size=6))
def test_stability_over_random_builds_counts_every_layer(builds):
    def made(kinds):
        layers = [engine_layer([f"/{i}"], 1.0, kind=kind) for i, kind in enumerate(kinds)]
        return Build(id=0, layers=[replace(x, selected=Rung.UNKNOWN) if k == "unknown" else x for x, k in zip(layers, kinds, strict=True)])

    report = stability([made(kinds) for kinds in builds], [str(i) for i in range(len(builds))])
    for item in report.layers:
        column = [kinds[int(item.nodes[0][1:])] for kinds in builds]
        assert (item.selected, item.dense, item.unknown) == tuple(column.count(kind) for kind in ("sparse", "dense", "unknown"))
    held = len(builds) >= 3 and all(len({kinds[i] for kinds in builds} | {"unknown"}) == 2 for i in range(3))
    assert ("selection held" in report.next) == (held and not any("unknown" in kinds for kinds in builds))


def test_a_build_that_lacks_a_layer_does_not_let_its_selection_hold():
    whole = Build(id=0, layers=[engine_layer(["/a"], 1.0, kind="sparse"), engine_layer(["/b"], 1.0)])
    report = stability([whole, Build(id=1), Build(id=2)], ["1", "2", "3"])
    assert report.changing == 0
    assert "not known in every build for 2 of 2 layers (/a: unknown in 2 of 3)" in report.next
    assert "no build shows a layer" in stability([Build(id=0), Build(id=1)], ["1", "2"]).next
    assert stability([whole] * 3, ["1", "2", "3"]).next == "the selection held in every build"
