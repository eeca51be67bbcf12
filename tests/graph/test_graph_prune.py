"""Pruning in the file: 2:4 on the deployed axis, the largest values kept, every other byte as it was."""

from __future__ import annotations

import shutil

import graph_zoo as zoo
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from pipeline import graph
from pipeline.errors import InputError
from pipeline.graph.patch import Patcher
from pipeline.graph.pruning import surplus
from pipeline.records.check import Target
from pipeline.records.prune import Action

REFUSED = {
    "add-sub": "does not make zero",
    "concat": "computed from others",
    "gather": "computed from others",
    "dq-int4": "another hardware pattern",
    "dq-uint4-blocked": "another hardware pattern",
    "dq-fp4": "another hardware pattern",
    "sparse-initializer": "sparse tensor",
    "sparse-value": "sparse tensor",
    "constant-floats": "list of numbers",
}
PATHS = [path for path in zoo.PATHS if path not in ("unsqueeze", "flatten")]


def prune(model: onnx.ModelProto, folder, **save):
    onnx.save(model, folder / "in.onnx", **save)
    (folder / "out").mkdir(exist_ok=True)
    report = graph.prune(folder / "in.onnx", folder / "out" / "out.onnx")
    return report, folder / "out" / "out.onnx"


def changed(before: bytes, after: bytes) -> list[int]:
    assert len(before) == len(after)
    return [at for at, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]


@pytest.mark.parametrize("name", PATHS)
def test_every_way_is_pruned_where_the_operator_reads_it_or_refused(name, tmp_path):
    op = zoo.OPS["conv2d"]
    weight = zoo.weight_of(op, "dense", np.dtype(np.float32), 5) * np.linspace(0.5, 4, op.shape[0]).reshape(-1, 1, 1, 1).astype(np.float32)
    model, built = zoo.build(op, zoo.PATHS[name], weight.astype(np.float32), 5)
    report, out = prune(model, tmp_path)
    (layer,) = report.layers
    before, after = (tmp_path / "in.onnx").read_bytes(), out.read_bytes()
    if name in REFUSED:
        assert layer.action is Action.REFUSED
        assert REFUSED[name] in layer.why
        assert before == after
        return
    assert layer.action is Action.PRUNED, layer.why
    pruned = onnx.load(out)
    folded = zoo.fold(zoo.Built(list(pruned.graph.node)[:-1], list(pruned.graph.initializer), built.output))
    original = zoo.fold(built)
    assert zoo.brute_force(folded, op.axis).two_four
    assert graph.check(out, Target()).layers[0].two_four is True
    kept = folded != 0
    assert np.array_equal(folded[kept], original[kept])
    _holds_the_largest(original, kept, op.axis)
    # Only values of one tensor changed.
    spans = [_span(before, tensor) for tensor in _tensors(model)]
    assert any(all(start <= at < stop for at in changed(before, after)) for start, stop in spans)


def _tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    values = [attribute.t for node in model.graph.node for attribute in node.attribute if attribute.type == onnx.AttributeProto.TENSOR]
    return [*model.graph.initializer, *values]


def _span(data: bytes, tensor: onnx.TensorProto) -> tuple[int, int]:
    at = data.index(tensor.raw_data)
    return at, at + len(tensor.raw_data)


def _holds_the_largest(original: np.ndarray, kept: np.ndarray, axis: int) -> None:
    size = np.moveaxis(np.abs(original.astype(np.float64)), axis, -1).reshape(-1, 4)
    held = np.moveaxis(kept, axis, -1).reshape(-1, 4)
    for values, keeps in zip(size.tolist(), held.tolist(), strict=True):
        lost = [value for value, keep in zip(values, keeps, strict=True) if not keep]
        assert max(lost) <= min((value for value, keep in zip(values, keeps, strict=True) if keep), default=np.inf)


@given(st.integers(0, 10**6), st.sampled_from([(8, 4), (4, 3), (2, 8, 5)]), st.booleans())
def test_surplus_keeps_the_two_largest_of_every_group(seed, shape, ties):
    size = np.random.default_rng(seed).integers(0, 3 if ties else 10**9, shape).astype(float)
    axis = next(axis for axis, length in enumerate(shape) if length % 4 == 0)
    drop = surplus(size, axis)
    groups = np.moveaxis(size, axis, -1).reshape(-1, 4)
    dropped = np.moveaxis(drop, axis, -1).reshape(-1, 4)
    assert (dropped.sum(axis=1) == 2).all()
    assert all(sorted(values[~gone]) == sorted(values)[2:] for values, gone in zip(groups, dropped, strict=True))


@pytest.mark.parametrize("kind", [T.FLOAT, T.FLOAT16, T.BFLOAT16, T.DOUBLE])
def test_weights_stored_as_typed_lists_are_pruned_in_place(kind, tmp_path):
    weight = zoo.dense((8, 6), 3)
    tensor = h.make_tensor("w", kind, weight.shape, weight.reshape(-1))
    assert not tensor.HasField("raw_data")
    model = zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [tensor])
    report, out = prune(model, tmp_path)
    assert report.layers[0].action is Action.PRUNED
    array = nh.to_array(onnx.load(out).graph.initializer[0])
    assert zoo.brute_force(array, 0).two_four
    assert np.array_equal(array[array != 0], nh.to_array(tensor)[array != 0])
    assert (tmp_path / "in.onnx").stat().st_size == out.stat().st_size


@pytest.mark.parametrize("zero", [3, -3])
def test_int8_lists_are_pruned_where_their_zero_point_fits(zero, tmp_path):
    levels = np.arange(1, 33).reshape(8, 4) + 10
    inits = [h.make_tensor("w", T.INT8, (8, 4), levels.reshape(-1).tolist()), zoo.init("s", np.float32(0.1)), zoo.init("z", np.int8(zero))]
    model = zoo.model_of([h.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]), h.make_node("MatMul", ["x", "d"], ["y"])], inits)
    report, out = prune(model, tmp_path)
    if zero < 0:  # a negative int32 takes ten bytes, the weight before it one
        assert report.layers[0].action is Action.REFUSED
        assert "does not fit" in report.layers[0].why
    else:
        array = nh.to_array(onnx.load(out).graph.initializer[0]).astype(int) - zero
        assert zoo.brute_force(array, 0).two_four


def external_model() -> onnx.ModelProto:
    inits = [zoo.init("w", zoo.dense((64, 32), 1).astype(np.float32)), zoo.init("b", np.arange(512, dtype=np.float32))]
    model = zoo.model_of([h.make_node("MatMul", ["x", "w"], ["m"]), h.make_node("Add", ["m", "b"], ["y"])], inits)
    model.opset_import.add(domain="custom.domain", version=7)
    model.metadata_props.add(key="author", value="someone")
    return model


def test_external_data_keeps_its_layout_and_the_model_file_every_byte(tmp_path):
    report, out = prune(external_model(), tmp_path, save_as_external_data=True, location="sub.bin", size_threshold=16)
    assert (tmp_path / "in.onnx").read_bytes() == out.read_bytes()
    before, after = (tmp_path / "sub.bin").read_bytes(), (out.parent / "sub.bin").read_bytes()
    entry = {e.key: e.value for e in onnx.load(out, load_external_data=False).graph.initializer[0].external_data}
    start = int(entry["offset"])
    assert all(start <= at < start + int(entry["length"]) for at in changed(before, after))
    assert graph.check(out, Target()).totals.two_four == 1
    loaded = onnx.load(out)
    assert [(entry.domain, entry.version) for entry in loaded.opset_import][-1] == ("custom.domain", 7)
    assert loaded.metadata_props[0].value == "someone"
    assert [entry.path for entry in report.output.external] == ["sub.bin"]
    assert report.output.external[0].sha256 != report.source.external[0].sha256


def test_nothing_is_overwritten_that_is_not_the_output(tmp_path):
    model = external_model()
    onnx.save(model, tmp_path / "in.onnx", save_as_external_data=True, location="d.bin", size_threshold=16)
    digest = (tmp_path / "d.bin").read_bytes()
    with pytest.raises(InputError, match="keeps its name"):
        graph.prune(tmp_path / "in.onnx", tmp_path / "out.onnx")
    with pytest.raises(InputError, match="overwrite the model"):
        graph.prune(tmp_path / "in.onnx", tmp_path / "in.onnx")
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "d.bin").write_bytes(b"of another model")
    with pytest.raises(InputError, match="overwrite another file"):
        graph.prune(tmp_path / "in.onnx", tmp_path / "o" / "out.onnx")
    assert (tmp_path / "d.bin").read_bytes() == digest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.bin", "in.onnx", "o"]


def test_a_failed_prune_leaves_nothing_behind(tmp_path):
    onnx.save(external_model(), tmp_path / "in.onnx")
    with pytest.raises(InputError, match="no layer matches"):
        graph.prune(tmp_path / "in.onnx", tmp_path / "o" / "out.onnx", ["nothing*"])
    assert list((tmp_path / "o").iterdir()) == []


def test_a_weight_shared_by_two_axes_is_2_4_along_both(tmp_path):
    inits = [zoo.init("w", zoo.dense((16, 16), 2).astype(np.float32))]
    nodes = [h.make_node("Gemm", ["x", "w"], ["a"], name="rows"), h.make_node("Gemm", ["a", "w"], ["y"], name="columns", transB=1)]
    report, out = prune(zoo.model_of(nodes, inits), tmp_path)
    assert [layer.action for layer in report.layers] == [Action.PRUNED, Action.PRUNED]
    array = nh.to_array(onnx.load(out).graph.initializer[0])
    assert zoo.brute_force(array, 0).two_four
    assert zoo.brute_force(array, 1).two_four


def test_a_weight_that_one_reader_cannot_have_2_4_is_refused_for_that_one(tmp_path):
    inits = [zoo.init("w", zoo.dense((16, 6), 2).astype(np.float32))]
    nodes = [h.make_node("Gemm", ["x", "w"], ["a"], name="rows"), h.make_node("Gemm", ["a", "w"], ["y"], name="columns", transB=1)]
    report, _ = prune(zoo.model_of(nodes, inits), tmp_path)
    assert [(layer.node, layer.action) for layer in report.layers] == [("rows", Action.PRUNED), ("columns", Action.REFUSED)]
    assert "no multiple of 4" in report.layers[1].why


def test_a_tied_embedding_is_named(tmp_path):
    inits = [zoo.init("w", zoo.dense((16, 8), 2).astype(np.float32)), zoo.init("i", np.array([1, 2]))]
    nodes = [h.make_node("Gather", ["w", "x"], ["e"], name="embed"), h.make_node("Gemm", ["e", "w"], ["y"], transB=1)]
    report, _ = prune(zoo.model_of(nodes, inits, dtype=T.INT64), tmp_path)
    assert report.layers[0].action is Action.PRUNED
    assert report.layers[0].why == "also read by Gather 'embed'"


def test_a_reader_that_was_not_chosen_is_named(tmp_path):
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"], name="one"), h.make_node("MatMul", ["a", "w"], ["y"], name="two")]
    onnx.save(zoo.model_of(nodes, [zoo.init("w", zoo.dense((8, 8), 1).astype(np.float32))]), tmp_path / "in.onnx")
    (layer,) = graph.prune(tmp_path / "in.onnx", tmp_path / "out.onnx", ["one"]).layers
    assert (layer.action, layer.why) == (Action.PRUNED, "also read by MatMul 'two'")


def test_only_the_chosen_layers_are_pruned(tmp_path):
    inits = [zoo.init("w", zoo.dense((8, 8), 1).astype(np.float32)), zoo.init("v", zoo.dense((8, 8), 2).astype(np.float32))]
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"], name="one"), h.make_node("MatMul", ["a", "v"], ["y"], name="two")]
    onnx.save(zoo.model_of(nodes, inits), tmp_path / "in.onnx")
    report = graph.prune(tmp_path / "in.onnx", tmp_path / "out.onnx", ["t*"])
    assert [layer.node for layer in report.layers] == ["two"]
    assert [layer.two_four for layer in graph.check(tmp_path / "out.onnx", Target()).layers] == [False, True]


def test_weights_in_functions_and_branches_are_pruned(tmp_path):
    """A Constant inside a function that is called twice, and an initializer of a branch."""
    product = [
        h.make_node("Constant", [], ["k"], value=zoo.init("", zoo.dense((8, 8), 1).astype(np.float16))),
        h.make_node("MatMul", ["a", "k"], ["b"]),
    ]
    function = h.make_function("local", "F", ["a"], ["b"], product, [h.make_opsetid("", zoo.OPSET)])
    branch = h.make_graph(
        [h.make_node("MatMul", ["x", "w"], ["r"])],
        "t",
        [],
        [onnx.ValueInfoProto(name="r")],
        [zoo.init("w", zoo.dense((8, 8), 2).astype(np.float16))],
    )
    nodes = [
        h.make_node("If", ["c"], ["i"], name="if", then_branch=branch, else_branch=branch),
        h.make_node("F", ["i"], ["j"], name="first", domain="local"),
        h.make_node("F", ["j"], ["y"], name="second", domain="local"),
    ]
    report, out = prune(zoo.model_of(nodes, [zoo.init("c", np.array(True))], functions=[function]), tmp_path)
    assert all(layer.action is Action.PRUNED for layer in report.layers)
    assert {layer.graph for layer in report.layers} == {"if.then_branch", "if.else_branch", "first:F", "second:F"}
    assert graph.check(out, Target()).totals.two_four == 4
    held = onnx.load(out)
    assert held.functions[0].name == "F"
    assert zoo.brute_force(nh.to_array(held.functions[0].node[0].attribute[0].t), 0).two_four


def test_pruning_twice_changes_nothing_more(tmp_path):
    model, _ = zoo.build(
        zoo.OPS["convtranspose-grouped"], zoo.direct, zoo.weight_of(zoo.OPS["convtranspose-grouped"], "dense", np.dtype(np.float16), 1)
    )
    _, out = prune(model, tmp_path)
    shutil.copy(out, tmp_path / "again.onnx")
    report = graph.prune(tmp_path / "again.onnx", tmp_path / "twice.onnx")
    assert report.layers[0].action is Action.ALREADY
    assert (tmp_path / "twice.onnx").read_bytes() == out.read_bytes()


def test_nan_and_infinity_are_kept_before_all_else(tmp_path):
    weight = zoo.dense((8, 4), 1).astype(np.float32)
    weight[0, 0], weight[2, 0] = np.nan, np.inf
    report, out = prune(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", weight)]), tmp_path)
    array = nh.to_array(onnx.load(out).graph.initializer[0])
    assert report.layers[0].action is Action.PRUNED
    assert np.isnan(array[0, 0])
    assert np.isinf(array[2, 0])


@settings(max_examples=50)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=40), st.integers(0, 127), st.randoms())
def test_numbers_of_variable_length_are_replaced_in_place(numbers, value, random):
    import tempfile
    from pathlib import Path

    from pipeline.graph.model import open_model

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "m.onnx"
        tensor = h.make_tensor("w", T.INT32, (len(numbers),), numbers)
        onnx.save(zoo.model_of([h.make_node("Identity", ["w"], ["y"])], [tensor]), path)
        model = open_model(path, threshold=1)
        stored = model.tensors.stored(model.proto.graph.initializer[0])
        spots = sorted(random.sample(range(len(numbers)), random.randint(1, len(numbers))))
        patcher = Patcher()
        patcher.put(stored, np.array(spots), np.array(value, np.int32))
        patcher.close()
        wanted = [value if at in spots else number for at, number in enumerate(numbers)]
        assert nh.to_array(onnx.load(path).graph.initializer[0]).tolist() == wanted
