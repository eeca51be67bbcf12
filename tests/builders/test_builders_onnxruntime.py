"""The onnxruntime backend builds, loads, times and profiles real sessions, and refuses what is not what was built."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from builder_cases import FEEDS, K, mlp, request

from pipeline.builders import backend
from pipeline.builders.onnxruntime import _node_means
from pipeline.errors import InputError, StageError, TamperedError


@pytest.fixture
def ort():
    return backend("onnxruntime", {"threads": 1})


@pytest.fixture
def model(tmp_path):
    return mlp(tmp_path / "m.onnx")


def test_the_door_imports_no_backend():
    code = (
        "import sys, pipeline.builders; "
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'tensorrt', 'torch', 'polygraphy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_backend_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="onnxruntime"):
        backend("openvino", {})


@pytest.mark.parametrize("threads", [0, -1, "two", 1.5])
def test_threads_that_make_no_sense_are_refused(threads):
    with pytest.raises(InputError, match="threads"):
        backend("onnxruntime", {"threads": threads})


def test_another_precision_than_the_files_is_refused():
    with pytest.raises(InputError, match="types of the file"):
        backend("onnxruntime", {"precision": "fp16"})


def test_a_built_engine_gives_onnx_runtimes_outputs(ort, model, tmp_path):
    engine = ort.build(request(model), tmp_path / "out")
    session = ort.load(engine, tmp_path / "out")
    expected = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, FEEDS)[0]
    np.testing.assert_allclose(session.run(FEEDS)["y"], expected, rtol=1e-6)
    session.close()
    with pytest.raises(StageError, match="closed"):
        session.run(FEEDS)


def test_sparse_and_twin_are_the_same_bytes_and_labelled_so(ort, model, tmp_path):
    sparse, twin = (ort.build(request(model, arm), tmp_path / "out") for arm in ("sparse", "twin"))
    assert sparse.plan.sha256 == twin.plan.sha256
    assert sparse.plan.path != twin.plan.path
    assert ort.flag_is_inert
    assert ort.sparse_kernels is False


def test_the_log_says_with_what_the_session_was_made(ort, model, tmp_path):
    engine = ort.build(request(model, repeat=2), tmp_path / "out")
    text = (tmp_path / "out" / engine.log.path).read_text()
    assert engine.log.path == "sparse-2.log"
    for fact in (onnxruntime.__version__, "CPUExecutionProvider", "threads: 1", "input x: tensor(float)"):
        assert fact in text


def test_a_changed_or_missing_plan_is_not_loaded(ort, model, tmp_path):
    engine = ort.build(request(model), tmp_path / "out")
    plan = tmp_path / "out" / engine.plan.path
    plan.write_bytes(plan.read_bytes() + b"\0")
    with pytest.raises(TamperedError, match="not the one that was built"):
        ort.load(engine, tmp_path / "out")
    plan.unlink()
    with pytest.raises(TamperedError, match="missing"):
        ort.load(engine, tmp_path / "out")


def test_external_weights_are_covered_by_the_plans_digest(ort, tmp_path):
    model = mlp(tmp_path / "ext.onnx", external=True)
    assert (tmp_path / "ext.onnx.data").is_file()
    engine = ort.build(request(model), tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir() if p.suffix != ".log"] == [engine.plan.path]
    assert ort.load(engine, tmp_path / "out").run(FEEDS)["y"].shape == (4, K)


@pytest.mark.parametrize("content", [b"", b"not onnx", b"\x08\x0a" * 9])
def test_what_is_no_model_is_refused(ort, tmp_path, content):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(content)
    with pytest.raises((InputError, StageError), match="ONNX"):
        ort.build(request(bad), tmp_path / "out")


def test_a_file_too_large_for_protobuf_is_refused_without_reading_it(ort, tmp_path):
    large = tmp_path / "large.onnx"
    large.touch()
    os.truncate(large, 3 << 30)
    with pytest.raises(InputError, match="more than 2 GiB") as caught:
        ort.build(request(large), tmp_path / "out")
    assert "save_as_external_data=True" in caught.value.hint


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({}, "reads"),
        ({"z": FEEDS["x"]}, "reads"),
        ({"x": FEEDS["x"][:, :5]}, "shape"),
        ({"x": FEEDS["x"][0]}, "shape"),
        ({"x": FEEDS["x"].astype(np.int64)}, "type"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(ort, model, tmp_path, feeds, words):
    session = ort.load(ort.build(request(model), tmp_path / "out"), tmp_path / "out")
    with pytest.raises(InputError, match=words):
        session.run(feeds)
    with pytest.raises(InputError, match=words):
        session.sampler(feeds)


def test_a_sampler_times_every_inference(ort, model, tmp_path):
    session = ort.load(ort.build(request(model), tmp_path / "out"), tmp_path / "out")
    sampler = session.sampler(FEEDS)
    samples = sampler.block(50)["host_latency"]
    assert samples.shape == (50,)
    assert samples.dtype == np.float64
    assert (samples > 0).all()
    assert sampler.block(1)["host_latency"].shape == (1,)


def test_the_profile_has_one_mean_per_pass_for_each_node(ort, model, tmp_path):
    engine = ort.build(request(model), tmp_path / "out")
    times = ort.profile(engine, tmp_path / "out", FEEDS, 3)
    assert times
    assert all(len(passes) == 3 and min(passes) >= 0 for passes in times.values())
    assert any("fc1" in node for node in times)


def test_profile_means_leave_the_warm_up_out():
    event = lambda us: {"cat": "Node", "name": "a_kernel_time", "dur": us}  # noqa: E731
    others = [{"cat": "Session", "name": "model_run", "dur": 5}, {"cat": "Node", "name": "a_fence_before", "dur": 5}]
    assert _node_means([event(9000), event(7000), event(1000), event(3000), *others]) == {"a": 2.0}
