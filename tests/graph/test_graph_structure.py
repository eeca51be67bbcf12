"""Where in a model a weight may be read: subgraphs, functions, several operators, constants, nowhere."""

from __future__ import annotations

import graph_zoo as zoo
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

from pipeline import graph
from pipeline.records.check import Outcome, Target
from pipeline.records.rung import Rung

RIGHT = zoo.two_four(zoo.dense((8, 12), 0), 0, 0).astype(np.float16)
WRONG = zoo.two_four(zoo.dense((8, 12), 0), 1, 0).astype(np.float16)
FULL = zoo.dense((8, 12), 1).astype(np.float16)
TARGET = Target(sm="8.6", tensorrt="10.13", typing="strong")


def check(model, folder, target=TARGET):
    onnx.save(model, folder / "m.onnx")
    return graph.check(folder / "m.onnx", target)


def branch(name: str, nodes, inits=()):
    return h.make_graph(list(nodes), name, [], [onnx.ValueInfoProto(name=nodes[-1].output[0])], list(inits))


def test_weights_in_and_around_the_branches_of_an_if(tmp_path):
    then = branch("t", [h.make_node("MatMul", ["x", "w"], ["y1"], name="inner")], [zoo.init("w", RIGHT)])
    other = branch("e", [h.make_node("Transpose", ["outer"], ["ot"]), h.make_node("MatMul", ["x", "ot"], ["y2"])])
    node = h.make_node("If", ["c"], ["y"], name="choose", then_branch=then, else_branch=other)
    report = check(zoo.model_of([node], [zoo.init("c", np.array(True)), zoo.init("outer", WRONG.T.copy())]), tmp_path)
    assert {layer.graph: (layer.node, layer.weight, layer.two_four) for layer in report.layers} == {
        "choose.then_branch": ("inner", "w", True),
        "choose.else_branch": ("y2", "outer", False),
    }
    assert report.notes == []


def test_a_name_of_the_subgraph_hides_one_around_it(tmp_path):
    body = h.make_graph(
        [h.make_node("Identity", ["cond"], ["again"]), h.make_node("MatMul", ["state", "w"], ["next"], name="step")],
        "body",
        [h.make_tensor_value_info(name, T.FLOAT, None) for name in ("i", "cond", "state", "w")],
        [onnx.ValueInfoProto(name=name) for name in ("again", "next", "w")],
    )
    loop = h.make_node("Loop", ["n", "c", "x", "x"], ["y", "z"], name="loop", body=body)
    inits = [zoo.init("w", RIGHT), zoo.init("n", np.array(3)), zoo.init("c", np.array(True))]
    report = check(zoo.model_of([loop], inits), tmp_path)
    (layer,) = report.layers
    assert (layer.two_four, layer.eligible, layer.graph) == (None, Rung.NO, "loop.body")
    assert [rule.outcome for rule in layer.rules if rule.id == "SG103"] == [Outcome.FAIL]


def test_a_weight_that_a_scan_takes_from_outside(tmp_path):
    body = h.make_graph(
        [h.make_node("MatMul", ["item", "w"], ["out"], name="step")],
        "body",
        [h.make_tensor_value_info("item", T.FLOAT16, None)],
        [onnx.ValueInfoProto(name="out")],
    )
    scan = h.make_node("Scan", ["x"], ["y"], name="scan", body=body, num_scan_inputs=1)
    report = check(zoo.model_of([scan], [zoo.init("w", RIGHT)]), tmp_path)
    assert [(layer.graph, layer.weight, layer.two_four) for layer in report.layers] == [("scan.body", "w", True)]


def linear_function():
    """Transposes by an attribute of the call, then multiplies: once with its argument, once with a constant of its own."""
    transpose = h.make_node("Transpose", ["weight"], ["t"])
    attribute = transpose.attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = "perm", "order", onnx.AttributeProto.INTS
    nodes = [
        transpose,
        h.make_node("MatMul", ["data", "t"], ["m"], name="outer"),
        h.make_node("Constant", [], ["k"], value=zoo.init("", RIGHT)),
    ]
    nodes += [h.make_node("MatMul", ["data", "k"], ["n"], name="own"), h.make_node("Add", ["m", "n"], ["result"])]
    return h.make_function("local", "Linear", ["data", "weight"], ["result"], nodes, [h.make_opsetid("", zoo.OPSET)], ["order"])


def test_local_functions_are_judged_once_per_call_with_the_call_s_weights(tmp_path):
    nodes = [
        h.make_node("Linear", ["x", "w"], ["a"], name="first", domain="local", order=[1, 0]),
        h.make_node("Linear", ["a", "v"], ["y"], name="second", domain="local", order=[0, 1]),
    ]
    inits = [zoo.init("w", RIGHT.T.copy()), zoo.init("v", WRONG)]
    report = check(zoo.model_of(nodes, inits, functions=[linear_function()]), tmp_path)
    assert [(layer.graph, layer.node, layer.weight, layer.two_four) for layer in report.layers] == [
        ("first:Linear", "outer", "w", True),
        ("first:Linear", "own", "k", True),
        ("second:Linear", "outer", "v", False),
        ("second:Linear", "own", "k", True),
    ]
    assert graph.node_names(tmp_path / "m.onnx")[:3] == ["first", "t", "outer"]


def test_a_function_that_makes_the_weight(tmp_path):
    turn = h.make_function(
        "local", "Turn", ["w"], ["t"], [h.make_node("Transpose", ["w"], ["t"], perm=[1, 0])], [h.make_opsetid("", zoo.OPSET)]
    )
    nodes = [h.make_node("Turn", ["w"], ["wt"], domain="local"), h.make_node("MatMul", ["x", "wt"], ["y"])]
    report = check(zoo.model_of(nodes, [zoo.init("w", RIGHT.T.copy())], functions=[turn]), tmp_path)
    assert [(layer.weight, layer.two_four, layer.path) for layer in report.layers] == [("w", True, ["Transpose"])]


def test_a_shared_weight_is_judged_on_each_reader_s_axis(tmp_path):
    square = zoo.two_four(zoo.dense((8, 8), 0), 0, 0).astype(np.float16)
    nodes = [h.make_node("Gemm", ["x", "w"], ["a"], name="rows"), h.make_node("Gemm", ["a", "w"], ["y"], name="columns", transB=1)]
    report = check(zoo.model_of(nodes, [zoo.init("w", square)]), tmp_path)
    assert [(layer.node, layer.axis, layer.two_four) for layer in report.layers] == [("rows", 0, True), ("columns", 1, False)]
    assert report.layers[1].two_four_on_other_axes == [0]
    assert any(rule.id == "SG209" and "transposed before export?" in rule.text for rule in report.layers[1].rules)


def test_constants_on_both_sides_are_both_judged(tmp_path):
    report = check(zoo.model_of([h.make_node("MatMul", ["a", "b"], ["y"])], [zoo.init("a", FULL.T.copy()), zoo.init("b", RIGHT)]), tmp_path)
    assert [(layer.operand, layer.weight, layer.axis, layer.two_four) for layer in report.layers] == [(1, "b", 0, True), (0, "a", 1, False)]


def test_siblings_share_an_input_and_go_together(tmp_path):
    nodes = [
        h.make_node("Identity", ["x"], ["i"]),
        h.make_node("MatMul", ["x", "q"], ["a"], name="query"),
        h.make_node("MatMul", ["i", "k"], ["b"], name="key"),
        h.make_node("Gemm", ["a", "v"], ["y"], name="alone"),
    ]
    report = check(zoo.model_of(nodes, [zoo.init("q", RIGHT), zoo.init("k", FULL), zoo.init("v", RIGHT)]), tmp_path)
    layers = {layer.node: layer for layer in report.layers}
    assert (layers["query"].siblings, layers["key"].siblings, layers["alone"].siblings) == (["key"], ["query"], [])
    assert (layers["query"].eligible, layers["key"].eligible, layers["alone"].eligible) == (Rung.UNKNOWN, Rung.NO, Rung.YES)
    assert any(rule.id == "SG114" and "key" in rule.text for rule in layers["query"].rules)


def test_initializers_that_nothing_reads_are_named_once_and_judge_nothing(tmp_path):
    report = check(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", RIGHT), zoo.init("left", FULL)]), tmp_path)
    assert report.notes == [f"initializer 'left' ({FULL.nbytes} bytes) is read by no node"]
    assert len(report.layers) == 1


def test_an_empty_node_name_is_made_from_its_output(tmp_path):
    report = check(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", RIGHT)]), tmp_path)
    assert report.layers[0].node == "y"


def test_nodes_out_of_order_are_sorted(tmp_path):
    nodes = [h.make_node("MatMul", ["x", "t"], ["y"]), h.make_node("Transpose", ["w"], ["t"], perm=[1, 0])]
    report = check(zoo.model_of(nodes, [zoo.init("w", RIGHT.T.copy())]), tmp_path)
    assert report.layers[0].two_four is True


def test_a_weight_computed_from_the_input_is_not_constant(tmp_path):
    nodes = [h.make_node("Mul", ["w", "x"], ["d"]), h.make_node("MatMul", ["x", "d"], ["y"])]
    report = check(zoo.model_of(nodes, [zoo.init("w", RIGHT)]), tmp_path)
    assert (report.layers[0].two_four, report.layers[0].weight, report.layers[0].eligible) == (None, None, Rung.NO)


def test_a_product_of_two_computed_tensors_has_no_weight(tmp_path):
    """Attention: it would make `--require '*'` fail for every transformer."""
    nodes = [h.make_node("MatMul", ["x", name], [out]) for name, out in (("w", "q"), ("v", "k"))]
    nodes += [h.make_node("Transpose", ["k"], ["kt"]), h.make_node("MatMul", ["q", "kt"], ["y"], name="scores")]
    report = check(zoo.model_of(nodes, [zoo.init("w", RIGHT), zoo.init("v", RIGHT)]), tmp_path)
    assert [layer.node for layer in report.layers] == ["q", "k"]
    assert report.notes == ["1 matrix products of two computed tensors have no weight and are not judged: 'scores'"]


def test_a_weight_that_the_caller_gives_is_listed_as_not_constant(tmp_path):
    model = zoo.model_of([h.make_node("Relu", ["x"], ["r"]), h.make_node("MatMul", ["r", "w"], ["y"])], [])
    model.graph.input.append(h.make_tensor_value_info("w", T.FLOAT, [8, 12]))
    assert [(layer.node, layer.two_four) for layer in check(model, tmp_path).layers] == [("y", None)]


def test_a_constant_that_is_not_computed_is_unknown_not_no(tmp_path):
    nodes = [h.make_node("Hardmax", ["w"], ["d"]), h.make_node("MatMul", ["x", "d"], ["y"])]
    report = check(zoo.model_of(nodes, [zoo.init("w", RIGHT)]), tmp_path)
    (layer,) = report.layers
    assert (layer.two_four, layer.weight, layer.eligible) == (None, "w", Rung.UNKNOWN)
    assert any("Hardmax" in rule.text for rule in layer.rules)


def test_random_numbers_are_no_constants(tmp_path):
    nodes = [h.make_node("RandomNormalLike", ["w"], ["d"]), h.make_node("MatMul", ["x", "d"], ["y"])]
    report = check(zoo.model_of(nodes, [zoo.init("w", RIGHT)]), tmp_path)
    assert report.layers[0].eligible is Rung.NO


def test_stripped_weights_are_unknown(tmp_path):
    stripped = onnx.TensorProto(name="w", data_type=T.FLOAT16, dims=[8, 12])
    report = check(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [stripped]), tmp_path)
    assert (report.layers[0].two_four, report.layers[0].eligible) == (None, Rung.UNKNOWN)
    assert any("stripped" in rule.text for rule in report.layers[0].rules)


def test_values_in_front_of_and_behind_quantize_linear_are_both_said(tmp_path):
    model, _ = zoo.build(zoo.OPS["matmul"], zoo.qdq(), RIGHT.astype(np.float32))
    (layer,) = check(model, tmp_path).layers
    assert (layer.two_four, layer.two_four_before_quantization, layer.quantized) == (True, False, "int8")
    assert [rule.text for rule in layer.rules if rule.id == "SG211"] == ["2:4 only after rounding, not in float"]


@pytest.mark.parametrize(
    ("equation", "shape", "why"),
    [
        ("ij,kl->ik", (8, 12), "one shared index"),
        ("bij,ijk->bk", (4, 8, 12), "one shared index"),
        ("ij,jj->ij", (8, 8), "diagonal"),
        ("ij,jk,kl->il", (8, 12), "3 operands"),
    ],
)
def test_an_einsum_that_is_no_matrix_product_is_said_and_not_judged(equation, shape, why, tmp_path):
    count = equation.count(",") + 1
    node = h.make_node("Einsum", ["x", "w", "x"][:count], ["y"], name="e", equation=equation)
    report = check(zoo.model_of([node], [zoo.init("w", zoo.dense(shape, 0))]), tmp_path)
    assert report.layers == []
    assert len(report.notes) == 1
    assert "'e' is not judged" in report.notes[0]
    assert why in report.notes[0]


def test_tiny_values_are_told_from_zeros_and_their_makers_named(tmp_path):
    weight = np.where(RIGHT == 0, np.float32(1e-9), RIGHT.astype(np.float32))
    (layer,) = check(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", weight)]), tmp_path).layers
    assert layer.two_four is False
    (text,) = [rule.text for rule in layer.rules if rule.id == "SG210"]
    assert "values up to 1e-09" in text
    assert all(word in text for word in ("float16", "INT8", "EMA"))


def test_dense_weights_are_not_called_nearly_2_4(tmp_path):
    (layer,) = check(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", FULL)]), tmp_path).layers
    assert not [rule for rule in layer.rules if rule.id == "SG210"]


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_negative_zeros_count_as_zero_and_nan_does_not(kind, tmp_path):
    weight = zoo.two_four(zoo.dense((8, 12), 0), 0, 0)
    signed = np.where(weight == 0, -0.0, weight).astype(kind)
    (layer,) = check(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", signed)]), tmp_path).layers
    assert (layer.two_four, layer.negative_zeros, layer.nonfinite) == (True, 48, 0)
    signed[np.argmax(weight[:, 3] == 0), 3] = np.nan
    (layer,) = check(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", signed)]), tmp_path).layers
    assert (layer.two_four, layer.negative_zeros, layer.nonfinite) == (False, 47, 1)


def test_an_operator_of_another_domain_is_not_taken_for_the_standard_s(tmp_path):
    node = h.make_node("Conv", ["x", "w"], ["y"], domain="local")
    assert check(zoo.model_of([node], [zoo.init("w", RIGHT)]), tmp_path).layers == []


def test_initializers_that_are_also_inputs_are_judged_and_said(tmp_path):
    model = zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", RIGHT)])
    model.graph.input.append(h.make_tensor_value_info("w", T.FLOAT16, RIGHT.shape))
    report = check(model, tmp_path)
    assert report.layers[0].two_four is True
    assert "also inputs" in report.notes[0]
