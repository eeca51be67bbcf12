"""Eligibility: yes, no because, or unknown, for a target; stable ids."""

from __future__ import annotations

import graph_zoo as zoo
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

from pipeline import codes, graph
from pipeline.errors import InputError
from pipeline.graph.hints import HINT_TABLE
from pipeline.graph.rules import RULE_TABLE
from pipeline.graph.targets import aim, covers
from pipeline.records.check import CheckedLayer, Outcome, Target
from pipeline.records.rung import Rung

YES, NO, UNKNOWN = Rung.YES, Rung.NO, Rung.UNKNOWN
STRONG_10 = Target(sm="8.6", tensorrt="10.13", typing="strong")
WEAK_10 = Target(sm="8.6", tensorrt="10.13", typing="weak")


def layer_of(op_name: str, dtype: str, target: Target, folder, path: str = "direct", pattern: str = "right", seed: int = 1) -> CheckedLayer:
    op = zoo.OPS[op_name]
    weight = zoo.weight_of(op, pattern, zoo.DTYPES[dtype], seed)
    model, _ = zoo.build(op, zoo.PATHS[path], weight, seed)
    onnx.save(model, folder / "m.onnx")
    return graph.check(folder / "m.onnx", target).layers[0]


def outcome(layer: CheckedLayer, rule: str) -> Outcome | None:
    return next((found.outcome for found in layer.rules if found.id == rule), None)


def test_ids_are_stable():
    """A released id keeps its meaning: titles may be reworded here, together with the registry."""
    assert {code.id: code.title for code in (*codes.RULES, *codes.HINTS)} == {
        "SG101": "2:4 on the reduction axis",
        "SG102": "reduction dimension is a multiple of 4",
        "SG103": "the weight is a constant",
        "SG104": "TensorRT has sparse tactics",
        "SG105": "compute capability 8.0 or later",
        "SG106": "weak typing: the builder may use a type with 2:4 kernels",
        "SG107": "strong typing: the tensor's own type has 2:4 kernels",
        "SG108": "the type's hardware pattern is 2:4",
        "SG109": "convolution without groups",
        "SG110": "operator known to get sparse tactics",
        "SG111": "operator known to the ONNX parser",
        "SG112": "not stored as a sparse tensor",
        "SG113": "matrix products outside or inside Myelin regions",
        "SG114": "every sibling is 2:4 too",
        "SG115": "quantization that the ONNX parser takes",
        "SG116": "element type with known 2:4 kernels",
        "SG117": "FP8 needs compute capability 8.9",
        "SG201": "few channels",
        "SG202": "channels not a multiple of 128",
        "SG203": "small batch",
        "SG204": "INT8 matrix product with an output that is not INT8",
        "SG205": "Q/DQ in 8.6",
        "SG206": "FP8 on Ada",
        "SG207": "negative zeros",
        "SG208": "NaN or infinity among the weights",
        "SG209": "2:4 along another axis",
        "SG210": "2:4 but for tiny values",
        "SG211": "quantization changes the pattern",
        "SG212": "DLA",
    }


def test_every_row_is_evaluated_and_every_evaluation_has_a_row():
    assert list(RULE_TABLE) == [code.id for code in codes.RULES]
    assert list(HINT_TABLE) == [code.id for code in codes.HINTS]
    assert all(code.text and code.title for code in (*codes.RULES, *codes.HINTS))
    assert all(covers(code.versions, (10, 0)) in (True, False) for code in (*codes.RULES, *codes.HINTS))


@pytest.mark.parametrize(
    ("op", "dtype", "path", "target", "eligible", "because"),
    [
        ("conv2d", "float16", "direct", STRONG_10, YES, None),
        ("conv2d", "bfloat16", "direct", STRONG_10, YES, None),
        ("conv2d", "float16", "direct", WEAK_10, YES, None),
        ("conv2d", "float32", "direct", STRONG_10, NO, "SG107"),
        ("conv2d", "float32", "direct", WEAK_10, UNKNOWN, "SG106"),
        ("conv2d", "float32", "direct", Target(sm="8.6", tensorrt="10.13"), UNKNOWN, "SG106"),
        ("conv2d", "float32", "direct", Target(sm="8.6", tensorrt="11.0"), NO, "SG107"),
        ("conv2d", "float32", "direct", Target(sm="8.6", tensorrt="8.6"), UNKNOWN, "SG106"),
        ("conv2d", "float64", "direct", STRONG_10, NO, "SG107"),
        ("conv2d", "float32", "dq-int8", STRONG_10, YES, None),
        ("conv2d", "float32", "dq-int8-channel", STRONG_10, YES, None),
        ("conv2d", "float32", "qdq-tensor", STRONG_10, YES, None),
        ("conv2d", "float32", "dq-int8-zero-point", STRONG_10, NO, "SG115"),
        ("conv2d", "float32", "dq-int8-blocked", STRONG_10, UNKNOWN, "SG115"),
        ("conv2d", "float32", "dq-uint8", STRONG_10, NO, "SG115"),
        ("conv2d", "float32", "dq-int4", STRONG_10, NO, "SG108"),
        ("conv2d", "float32", "dq-fp4", STRONG_10, NO, "SG108"),
        ("conv2d", "float32", "dq-fp8", STRONG_10, NO, "SG117"),
        ("conv2d", "float32", "dq-fp8", Target(sm="8.9", tensorrt="10.13", typing="strong"), YES, None),
        ("conv2d", "float16", "trt-fp8", Target(sm="9.0", tensorrt="10.13", typing="strong"), YES, None),
        ("conv2d", "float32", "dq-fp8-e5m2", Target(sm="9.0", tensorrt="10.13", typing="strong"), NO, "SG115"),
        ("conv2d", "float16", "sparse-initializer", STRONG_10, NO, "SG112"),
        ("conv2d", "float16", "sparse-value", STRONG_10, NO, "SG112"),
        ("conv2d", "float16", "direct", Target(sm="7.5", tensorrt="10.13", typing="strong"), NO, "SG105"),
        ("conv2d", "float16", "direct", Target(tensorrt="10.13", typing="strong"), UNKNOWN, "SG105"),
        ("conv2d", "float16", "direct", Target(), UNKNOWN, "SG105"),
        ("conv2d", "float16", "direct", Target(sm="8.6", tensorrt="7.2"), NO, "SG104"),
        ("conv1d", "float16", "direct", STRONG_10, YES, None),
        ("conv3d", "float16", "direct", STRONG_10, UNKNOWN, "SG110"),
        ("convtranspose", "float16", "direct", STRONG_10, UNKNOWN, "SG110"),
        ("conv-grouped", "float16", "direct", Target(sm="8.6", tensorrt="8.6"), NO, "SG109"),
        ("conv-grouped", "float16", "direct", STRONG_10, UNKNOWN, "SG109"),
        ("conv-of-3", "float16", "direct", STRONG_10, NO, "SG102"),
        ("gemm", "float16", "direct", STRONG_10, YES, None),
        ("gemm-transB", "float16", "direct", STRONG_10, YES, None),
        ("gemm-A", "float16", "direct", STRONG_10, UNKNOWN, "SG110"),
        ("matmul", "float16", "direct", STRONG_10, YES, None),
        ("matmul", "float16", "direct", Target(sm="8.6", tensorrt="8.4"), UNKNOWN, "SG113"),
        ("matmul", "float16", "direct", Target(sm="8.6", tensorrt="9.3"), UNKNOWN, "SG113"),
        ("matmul", "float16", "direct", Target(sm="8.6"), UNKNOWN, "SG113"),
        ("matmul-left", "float16", "direct", STRONG_10, UNKNOWN, "SG110"),
        ("matmul-batched", "float16", "direct", STRONG_10, YES, None),
        ("einsum", "float16", "direct", STRONG_10, UNKNOWN, "SG110"),
    ],
)
def test_a_2_4_layer_is_eligible_or_says_which_rule_decides(op, dtype, path, target, eligible, because, tmp_path):
    layer = layer_of(op, dtype, target, tmp_path, path)
    assert layer.eligible is eligible
    if because is not None:
        assert outcome(layer, because) is (Outcome.FAIL if eligible is NO else Outcome.UNKNOWN)


@pytest.mark.parametrize("op", ["QLinearConv", "ConvInteger", "QLinearMatMul", "MatMulInteger"])
def test_operators_that_the_parser_refuses_are_never_eligible(op, tmp_path):
    shape = (4, 8, 3, 3) if "Conv" in op else (8, 4)
    weight = np.zeros(shape, np.int8)
    inputs = ["x", "s", "z", "w", "s", "z", "s", "z"] if op.startswith("Q") else ["x", "w"]
    inits = [zoo.init("w", weight), zoo.init("s", np.float32(1)), zoo.init("z", np.int8(0))]
    onnx.save(zoo.model_of([h.make_node(op, inputs, ["y"])], inits), tmp_path / "m.onnx")
    (layer,) = graph.check(tmp_path / "m.onnx", STRONG_10).layers
    assert (layer.two_four, layer.eligible, outcome(layer, "SG111")) == (True, NO, Outcome.FAIL)


@pytest.mark.parametrize("pattern", ["dense", "one-wrong", "axis-0"])
def test_a_layer_that_is_not_2_4_is_never_eligible(pattern, tmp_path):
    for target in (STRONG_10, WEAK_10, Target()):
        layer = layer_of("conv2d", "float16", target, tmp_path, pattern=pattern)
        assert (layer.eligible, outcome(layer, "SG101")) == (NO, Outcome.FAIL)


def test_int4_may_be_2_4_as_a_fact_and_is_not_eligible(tmp_path):
    for target in (STRONG_10, WEAK_10, Target()):
        layer = layer_of("matmul", "float32", target, tmp_path, "dq-int4")
        assert (layer.two_four, layer.eligible) == (True, NO)


@pytest.mark.parametrize(
    "values", [{"sm": "86x"}, {"sm": "ampere"}, {"tensorrt": "ten"}, {"typing": "loose"}, {"tensorrt": "11.2", "typing": "weak"}]
)
def test_a_target_that_is_none_is_refused(values):
    with pytest.raises(InputError):
        aim(Target(**values))


@pytest.mark.parametrize(("text", "wanted"), [("8.6", (8, 6)), ("86", (8, 6)), ("sm_90", (9, 0)), ("SM120", (12, 0)), ("9.0a", (9, 0))])
def test_compute_capabilities_are_read_as_people_write_them(text, wanted):
    assert aim(Target(sm=text)).sm == wanted


@pytest.mark.parametrize(
    ("text", "wanted"), [("10.13", (10, 13)), ("10", (10, 0)), ("8.6.1", (8, 6)), ("10.14.1.48.post1", (10, 14)), ("11.4.0.106", (11, 4))]
)
def test_versions_are_read_as_packages_write_them(text, wanted):
    assert aim(Target(tensorrt=text)).tensorrt == wanted


@pytest.mark.parametrize(
    ("spec", "version", "wanted"),
    [
        ("all", None, True),
        ("8.x", (8, 6), True),
        ("8.x", (10, 0), False),
        (">=10.0", (10, 0), True),
        ("<11.0", (11, 0), False),
        ("8.x", None, None),
    ],
)
def test_version_ranges(spec, version, wanted):
    assert covers(spec, version) is wanted


# --- hints ---------------------------------------------------------------------------------------------------------------
def hints(layer: CheckedLayer) -> dict[str, str]:
    return {rule.id: rule.text for rule in layer.rules if rule.outcome is Outcome.HINT}


def conv(folder, weight, target=STRONG_10, batch=None) -> CheckedLayer:
    model = zoo.model_of([h.make_node("Conv", ["x", "w"], ["y"])], [zoo.init("w", weight)])
    if batch is not None:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = batch
    onnx.save(model, folder / "m.onnx")
    return graph.check(folder / "m.onnx", target).layers[0]


def test_hints_predict_and_never_decide(tmp_path):
    weight = np.zeros((256, 256, 1, 1), np.float16)
    assert hints(conv(tmp_path, weight)) == {}
    small = conv(tmp_path, weight[:, :64], batch=1)
    assert set(hints(small)) == {"SG201", "SG202", "SG203"}
    assert small.eligible is YES
    assert "SG201" not in hints(conv(tmp_path, np.zeros((256, 64, 3, 3), np.float16)))
    assert "SG203" not in hints(conv(tmp_path, weight, batch=64))


def test_negative_zeros_and_nonfinite_values_are_hinted(tmp_path):
    weight = np.zeros((256, 256, 1, 1), np.float16)
    weight[0, 0], weight[0, 1], weight[3, 9] = -0.0, np.nan, np.inf
    layer = conv(tmp_path, weight)
    assert (layer.two_four, layer.negative_zeros, layer.nonfinite) == (True, 1, 2)
    assert set(hints(layer)) == {"SG207", "SG208"}


def test_old_versions_and_boards_have_hints_of_their_own(tmp_path):
    assert "SG205" in hints(layer_of("conv2d", "float32", Target(sm="8.6", tensorrt="8.6"), tmp_path, "dq-int8"))
    assert "SG206" in hints(layer_of("conv2d", "float32", Target(sm="8.9", tensorrt="10.13"), tmp_path, "dq-fp8"))
    assert "too few" in hints(layer_of("conv2d", "float32", Target(sm="8.7", tensorrt="10.3"), tmp_path, "dq-int8"))["SG212"]


@pytest.mark.parametrize(("quantized", "hinted"), [(True, False), (False, True)])
def test_an_int8_product_wants_an_int8_output(quantized, hinted, tmp_path):
    inits = [zoo.init("w", np.zeros((8, 8), np.int8)), zoo.init("s", np.float32(0.1)), zoo.init("b", np.zeros(8, np.float32))]
    nodes = [
        h.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        h.make_node("MatMul", ["x", "d"], ["m"]),
        h.make_node("Add", ["m", "b"], ["a"]),
    ]
    nodes.append(h.make_node("QuantizeLinear", ["a", "s"], ["y"], output_dtype=T.INT8) if quantized else h.make_node("Relu", ["a"], ["y"]))
    onnx.save(zoo.model_of(nodes, inits), tmp_path / "m.onnx")
    assert ("SG204" in hints(graph.check(tmp_path / "m.onnx", STRONG_10).layers[0])) is hinted


def test_narrow_types_are_read_bit_by_bit(tmp_path):
    """Two int4 values share a byte; the first lies in the low bits."""
    weight = np.array([[1, 0, 0, -8], [0, 0, 3, 0]], ml_dtypes.int4)
    inits = [zoo.init("w", weight), zoo.init("s", np.float32(1))]
    onnx.save(
        zoo.model_of([h.make_node("DequantizeLinear", ["w", "s"], ["d"]), h.make_node("Gemm", ["x", "d"], ["y"], transB=1)], inits),
        tmp_path / "m.onnx",
    )
    (layer,) = graph.check(tmp_path / "m.onnx", Target()).layers
    assert (layer.two_four, layer.zero_fraction, layer.quantized) == (True, 5 / 8, "int4")
