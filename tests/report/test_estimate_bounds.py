"""Estimates equal hand computation, and the bounds are never below a simulated truth."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from pipeline import api
from pipeline.cli import group
from pipeline.errors import InputError
from pipeline.graph.estimate import gpu_bound, profile_bound
from pipeline.graph.gpus import GPUS, Gpu, Peak, pick_gpus
from pipeline.graph.storage import packed_bytes
from pipeline.records.check import Target
from pipeline.records.estimate import LayerWork, amdahl
from pipeline.records.rung import Rung
from pipeline.report.estimate_view import estimate_markdown, estimate_text

A30 = pick_gpus(["A30"])[0]


def weights(name, *shape, dtype=np.float16):
    return numpy_helper.from_array(np.ones(shape, dtype), name)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Conv 3->8 (stays dense), Conv 8->16 3x3 stride 2, a grouped Conv, ConvTranspose, then Gemm with transB, and MatMul."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "w2"], ["b"], "second", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Conv", ["b", "w3"], ["c"], "grouped", group=4),
        helper.make_node("ConvTranspose", ["c", "w4"], ["d"], "up", strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("Gemm", ["f", "w5"], ["g"], "gemm", transB=1),
        helper.make_node("MatMul", ["g", "w6"], ["y"], "matmul"),
    ]
    held = [
        weights("w1", 8, 3, 3, 3),
        weights("w2", 16, 8, 3, 3),
        weights("w3", 16, 4, 1, 1),
        weights("w4", 16, 8, 2, 2),
        weights("w5", 32, 8),
        weights("w6", 32, 12),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["n", 3, 16, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["n", 12])
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    path = tmp_path_factory.mktemp("estimate") / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_work_of_known_shapes_is_what_a_hand_computes(model):
    work = {layer.node: layer for layer in api.estimate(model, batch=5).layers}
    by_hand = {
        "first": (2 * 5 * 8 * 16 * 16 * 3 * 9, 8 * 3 * 9, 5 * 3 * 256, 5 * 8 * 256),
        "second": (2 * 5 * 16 * 8 * 8 * 8 * 9, 16 * 8 * 9, 5 * 8 * 256, 5 * 16 * 64),
        "grouped": (2 * 5 * 16 * 8 * 8 * 4, 16 * 4, 5 * 16 * 64, 5 * 16 * 64),
        "up": (2 * 5 * 16 * 64 * 8 * 4, 16 * 8 * 4, 5 * 16 * 64, 5 * 8 * 256),
        "gemm": (2 * 5 * 32 * 8, 32 * 8, 5 * 8, 5 * 32),
        "matmul": (2 * 5 * 12 * 32, 32 * 12, 5 * 32, 5 * 12),
    }
    found = {name: (w.flops, w.weight_bytes // 2, w.input_bytes // 2, w.output_bytes // 2) for name, w in work.items()}
    assert found == by_hand
    assert work["second"].intensity == by_hand["second"][0] / (2 * sum(by_hand["second"][1:]))


def test_a_dense_model_is_judged_by_the_rules_apart_from_the_pattern(model):
    could = {layer.node: layer.could for layer in api.estimate(model, Target(tensorrt="8.6"), batch=1).layers}
    assert could["first"] is Rung.NO  # 3 input channels
    assert could["grouped"] is Rung.NO  # 8.x does not consider groups
    assert could["second"] is Rung.YES
    assert could["up"] is Rung.UNKNOWN


def test_bounds_of_known_work_are_what_a_hand_computes():
    layers = [
        LayerWork(node="a", op="Conv", flops=6 * 10**12, weight_bytes=2 * 10**6, input_bytes=10**6, output_bytes=10**6, could=Rung.YES),
        LayerWork(node="b", op="Conv", flops=2 * 10**12, weight_bytes=10**6, input_bytes=10**6, output_bytes=0, could=Rung.NO),
        LayerWork(node="c", op="Gemm", flops=10**6, weight_bytes=16 * 10**9, input_bytes=0, output_bytes=0, could=Rung.UNKNOWN),
    ]
    gpu = Gpu(name="g", sm="8.0", gb_per_s=1000, peaks=[], source="")
    bound = gpu_bound(layers, gpu, Peak("fp16", "fp32", 100, 200), "float16")
    eligible = 6e12 + 1e6
    assert bound.share == pytest.approx(eligible / (8e12 + 1e6))
    assert bound.mathematics == pytest.approx((8e12 + 1e6) / (2e12 + eligible / 2))
    assert bound.traffic == pytest.approx((0.06 + 0.02 + 0.016) / (0.03 + 0.02 + 0.009))
    assert bound.memory_bound == 1


def test_a_gpu_without_sparse_tensor_cores_gains_nothing(model):
    (bound,) = api.estimate(model, batch=64, gpus=["t4"]).gpus
    assert (bound.mathematics, bound.traffic) == (1.0, 1.0)


works = st.builds(
    LayerWork,
    node=st.uuids().map(str),
    op=st.just("Conv"),
    flops=st.integers(10**3, 10**13),
    weight_bytes=st.integers(1, 10**9).map(lambda n: 8 * n),
    input_bytes=st.integers(0, 10**9),
    output_bytes=st.integers(0, 10**9),
    could=st.sampled_from([Rung.YES, Rung.NO, Rung.UNKNOWN]),
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(works, min_size=1, max_size=20),
    st.sampled_from([gpu for gpu in GPUS if gpu.sm != "7.5"]),
    st.floats(0.05, 1.0),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_the_bound_with_traffic_is_never_below_a_simulated_truth(layers, gpu, efficiency, other, seed):
    """The truth: all layers reach one share of the roofline, sparse kernels gain anything up to their roofline, the rest costs time too."""
    rng = np.random.default_rng(seed)
    peak = gpu.peaks[0]

    def seconds(flops, tops, moved):
        return max(flops / (tops * 1e12), moved / (gpu.gb_per_s * 1e9)) / efficiency

    dense, sparse = 0.0, 0.0
    for layer in layers:
        before = seconds(layer.flops, peak.dense, layer.total_bytes)
        packed = packed_bytes(layer.weight_bytes // 2, "float16") + layer.input_bytes + layer.output_bytes
        best = seconds(layer.flops, peak.sparse, packed)
        after = before if layer.could is Rung.NO or rng.random() < 0.3 else rng.uniform(min(best, before), before)
        dense, sparse = dense + before, sparse + after
    rest = other * dense
    bound = gpu_bound(layers, gpu, peak, "float16")
    assert (dense + rest) / (sparse + rest) <= bound.traffic * (1 + 1e-9)
    assert bound.mathematics <= peak.sparse / peak.dense + 1e-9
    if all(layer.flops / (peak.sparse * 1e12) >= layer.total_bytes / (gpu.gb_per_s * 1e9) for layer in layers):
        assert (dense + rest) / (sparse + rest) <= bound.mathematics * (1 + 1e-9)


MEASURED = st.tuples(st.floats(0.001, 10), st.sampled_from(["able", "not", "opaque", "unjoined"]))


@settings(max_examples=100, deadline=None)
@given(st.lists(MEASURED, min_size=1, max_size=20), st.integers(0, 2**32))
def test_the_bound_of_a_profile_is_never_below_any_truth(measured, seed):
    """The truth: whatever a layer's efficiency, those that hold a node which could be eligible gain anything up to twice."""
    rng = np.random.default_rng(seed)
    times, nodes, layers, after = {}, {}, [], 0.0
    for i, (ms, kind) in enumerate(measured):
        name = f"{{ForeignNode[n{i}...z]}}" if kind == "opaque" else f"layer {i}"
        times[name] = ms
        nodes[name] = frozenset() if kind == "unjoined" else frozenset([f"n{i}"])
        able = Rung.YES if kind == "able" else Rung.NO
        layers.append(LayerWork(node=f"n{i}", op="Conv", flops=1, weight_bytes=1, input_bytes=1, output_bytes=1, could=able))
        after += ms if kind == "not" else ms / rng.uniform(1, 2)
    bound = profile_bound(times, nodes, layers, 2.0, "p")
    assert sum(times.values()) / after <= bound.at_most * (1 + 1e-9)
    assert bound.at_most == pytest.approx(amdahl(bound.total_ms, bound.eligible_ms, 2.0))


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_gpu_states_its_source_and_geforce_halves_fp32_accumulation(gpu):
    rates = {(peak.dtype, peak.accumulate): peak for peak in gpu.peaks}
    half, full = rates["fp16", "fp32"], rates["fp16", "fp16"]
    geforce = gpu.name.startswith("RTX-") and gpu.name != "RTX-A6000"
    assert half.dense == pytest.approx(full.dense / 2 if geforce else full.dense)
    assert rates["int8", "int32"].dense == pytest.approx(2 * full.dense, rel=0.02)
    assert all(peak.sparse is None if gpu.name == "T4" else peak.sparse == 2 * peak.dense for peak in gpu.peaks)
    assert "NVIDIA" in gpu.source


def test_a_users_gpus_stand_beside_and_over_the_table(tmp_path, model):
    own = [{"name": "Mine", "sm": "8.6", "gb_per_s": 500, "peaks": [["fp16", "fp32", 100, 180]], "source": "measured"}]
    (tmp_path / "gpus.json").write_text(json.dumps(own))
    (bound,) = api.estimate(model, batch=1, gpus=["mine"], gpu_table=tmp_path / "gpus.json").gpus
    assert (bound.gpu, bound.dense_tops, bound.sparse_tops, bound.source) == ("Mine", 100, 180, "measured")
    (tmp_path / "gpus.json").write_text('[{"name": 1}]')
    with pytest.raises(InputError, match="not a table of GPUs"):
        api.estimate(model, batch=1, gpu_table=tmp_path / "gpus.json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "axis 0 of input 'x' is open"),
        ({"batch": 1, "gpus": ["abacus"]}, "no GPU 'abacus'"),
        ({"shapes": {"z": [1]}}, "no input 'z'"),
        ({"shapes": {"x": [1, 3]}}, "has 4 axes, 2 were given"),
        ({"shapes": {"x": [1, 4, 16, 16]}}, "axis 1 of input 'x' is 3 in the model, 4 was given"),
    ],
)
def test_what_is_missing_or_wrong_is_said(model, words, message):
    with pytest.raises(InputError, match=message):
        api.estimate(model, **words)


def test_a_profile_replaces_the_share_of_the_shapes(model, tmp_path):
    times = {"first": 14.0, "second": 6.0}
    rows = [{"name": name, "timeMs": 100 * ms, "averageMs": ms, "medianMs": ms, "percentage": 5 * ms} for name, ms in times.items()]
    (tmp_path / "profile.json").write_text(json.dumps([{"count": 100}, *rows]))
    found = api.estimate(model, Target(tensorrt="8.6"), batch=1, profile=tmp_path / "profile.json").profile
    assert (found.total_ms, found.eligible_ms, found.at_most) == (20.0, 6.0, pytest.approx(20 / 17))


def test_it_says_at_most_and_never_will(model):
    report = api.estimate(model, batch=8)
    for text in (estimate_text(report), estimate_markdown(report)):
        assert "at most" in text
        assert " will " not in text
    assert max(map(len, estimate_text(report, 80).splitlines())) <= 80 + len(str(model))


@pytest.mark.parametrize("style", ["text", "md", "json"])
def test_the_command_prints_every_format(model, style):
    words = ["check", str(model), "--estimate", "--shape", "x=4x3x16x16", "--gpu", "A30", "--accumulate", "fp16", "--format", style]
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, result.exception
    if style == "json":
        found = json.loads(result.output)
        assert (found["schema"], found["gpus"][0]["kind"]) == ("sparsegate.estimate/1", "fp16 with fp16 accumulation")
    else:
        assert "A30" in result.output


def test_a_quantised_model_is_counted_in_int8_at_the_int8_peak(tmp_path):
    from journey_models import int8_without_output_quantizer

    report = api.estimate(int8_without_output_quantizer(tmp_path / "m.onnx"), batch=8, gpus=["A30"], accumulate="fp16")
    assert (report.dtype, report.gpus[0].kind, report.gpus[0].dense_tops) == ("int8", "int8 with int32 accumulation", 330)
    assert (report.layers[0].flops, report.layers[0].weight_bytes) == (2 * 8 * 64 * 32, 64 * 32)


def test_a_gpu_without_peaks_of_the_type_is_named(tmp_path, model):
    own = [{"name": "Mine", "sm": "8.6", "gb_per_s": 500, "peaks": [["int8", "int32", 100, 200]], "source": "measured"}]
    (tmp_path / "gpus.json").write_text(json.dumps(own))
    report = api.estimate(model, batch=1, gpus=["mine"], gpu_table=tmp_path / "gpus.json")
    assert report.gpus == []
    assert report.notes[-1] == "no float16 peaks known of Mine"
    assert report.next.startswith("name a GPU")
