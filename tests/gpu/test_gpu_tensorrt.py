"""The tensorrt backend on a GPU: `make gpu-test`, for whoever has TensorRT and pycuda.

It leaves `logs/gpu-bundle/`, which a machine without a GPU can read again (`tests/gpu/bundle.py`).
Nothing of this runs without a GPU; what is proven without one is in docs/tensorrt.md.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "builders"))
from builder_cases import two_four
from bundle import keep, reread

from pipeline import api, machine
from pipeline.builders import backend, parity
from pipeline.builders.base import ArmRequest
from pipeline.errors import InputError, StageError
from pipeline.records.measurement import Conditions, Measurement

pytestmark = pytest.mark.gpu
BUNDLE = Path(os.environ.get("SPARSEGATE_GPU_BUNDLE", "logs/gpu-bundle"))
CHANNELS, SIZE = 512, 28
PROFILES = [
    {"x": {kind: [batch, CHANNELS, SIZE, SIZE] for kind, batch in zip(("min", "opt", "max"), batches, strict=True)}}
    for batches in ((1, 1, 1), (2, 8, 16))
]
FEEDS = {"x": np.random.default_rng(5).standard_normal((8, CHANNELS, SIZE, SIZE)).astype(np.float16)}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two fp16 3x3 convolutions of 512 channels (big enough that sparse tactics have a chance), 2:4 and dense."""
    folder = tmp_path_factory.mktemp("models")
    return {name: convs(folder / f"{name}.onnx", sparse=name == "sparse") for name in ("sparse", "dense")}


def convs(path: Path, *, sparse: bool) -> Path:
    rng = np.random.default_rng(1)
    tensors = []
    for name in ("w1", "w2"):
        weight = (rng.standard_normal((CHANNELS, 3, 3, CHANNELS)) * 0.02).astype(np.float32)
        weight = two_four(weight) if sparse else weight  # along the last axis: the input channels
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(weight.transpose(0, 3, 1, 2)).astype(np.float16), name))
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["h"], name="body/conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["h"], ["a"], name="body/relu"),
        helper.make_node("Conv", ["a", "w2"], ["y"], name="body/conv2", pads=[1, 1, 1, 1]),
    ]
    shape = ["batch", CHANNELS, SIZE, SIZE]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(path))
    return path


def ask(models: dict[str, Path], arm: str, repeat: int = 1) -> ArmRequest:
    source = "dense" if arm == "dense" else "sparse"
    return ArmRequest(
        arm=arm, repeat=repeat, onnx=models[source], onnx_arm=source, sparse_weights=arm == "sparse", precision="fp16", profiles=PROFILES
    )


@pytest.fixture(scope="module")
def gpu() -> dict[str, str]:
    found = backend("tensorrt", {}).describe()  # fails, with what is missing, where there is no GPU or TensorRT
    assert machine.gpus()
    return found


@pytest.fixture(scope="module")
def engines(gpu: dict[str, str], models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Point 1: all arms and a rebuilt one, with everything they leave."""
    folder = tmp_path_factory.mktemp("engines")
    made = backend("tensorrt", {})
    arms = [("sparse", 1), ("twin", 1), ("dense", 1), ("sparse", 2)]
    built = {f"{arm}#{repeat}": made.build(ask(models, arm, repeat), folder) for arm, repeat in arms}
    keep(folder, BUNDLE, list(built.values()), "tensorrt")
    return made, built, folder


def test_every_arm_leaves_plan_log_layers_and_cache(engines):
    _, built, folder = engines
    for engine in built.values():
        assert all(
            artifact and (folder / artifact.path).is_file()
            for artifact in (engine.plan, engine.log, engine.layer_info, engine.timing_cache)
        )
        assert ("SPARSE_WEIGHTS" in engine.options["builder_flags"]) == (engine.arm == "sparse")


def test_eligible_layers_are_those_with_24_weights_and_the_twin_holds_no_sparse_kernel(engines):
    _, built, folder = engines
    sparse, twin = (
        api.read_log(folder / built[name].log.path, folder / built[name].layer_info.path).builds[0] for name in ("sparse#1", "twin#1")
    )
    assert len(sparse.eligible) >= 2
    assert not twin.selected


def test_a_replay_builds_the_recorded_engine(engines, models, tmp_path):
    _, _, folder = engines
    again = backend("tensorrt", {"timing_cache": "replay", "timing_cache_from": str(folder)}).build(ask(models, "sparse"), tmp_path)
    assert any("are the recorded ones" in note for note in again.notes), again.notes


def test_a_build_for_which_the_version_lacks_something_is_refused(gpu, models, tmp_path):
    eleven = int(gpu["tensorrt"].split(".")[0]) >= 11
    options = {"typing": "weak"} if eleven else {"tactic_sources": ["NO_SUCH_SOURCE"]}
    with pytest.raises(InputError):
        backend("tensorrt", options).build(ask(models, "sparse"), tmp_path)


def test_a_build_without_workspace_leaves_its_log_and_a_clean_parent(models, tmp_path):
    try:
        engine = backend("tensorrt", {"workspace_mib": 1}).build(ask(models, "sparse"), tmp_path)
    except StageError as error:
        assert "TensorRT built no engine" in error.what
    else:
        assert engine.plan.size_bytes > 0
    assert (tmp_path / "sparse.log").stat().st_size > 0


def test_an_interrupted_build_stops_at_once(models, tmp_path):
    def interrupt(task: str, done: float, total: float | None = None, text: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backend("tensorrt", {"optimization_level": 5}).build(ask(models, "sparse"), tmp_path, interrupt)
    assert not (tmp_path / "sparse.plan").exists()


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("transfers", [True, False])
def test_times_are_taken_with_and_without_graph_and_transfers(engines, graph, transfers):
    _, built, folder = engines
    made = backend("tensorrt", {"cuda_graph": graph, "transfers": transfers})
    session = made.load(built["sparse#1"], folder)
    watch = made.watch()
    samples = session.sampler(FEEDS).block(50)
    observed = watch.stop()
    session.close()
    assert (samples["gpu_compute"] > 0).all()
    assert (samples["host_latency"] >= samples["gpu_compute"] * 0.9).all()
    assert "sm_clock_mhz" in observed.facts
    assert np.median(samples["gpu_compute"]) < 100


def test_layers_are_profiled_several_times(engines):
    made, built, folder = engines
    layers = made.profile(built["sparse#1"], folder, FEEDS, 3)
    assert layers
    assert all(len(passes) == 3 and min(passes) > 0 for passes in layers.values())
    named = made.onnx_nodes(built["sparse#1"], folder, list(layers))
    assert set(named) == set(layers)


def test_engines_agree_with_their_oracles_and_leave_their_record(engines, models, tmp_path):
    made, built, folder = engines
    oracle = backend("onnxruntime", {"threads": 4})
    ort = oracle.load(oracle.build(ask(models, "sparse"), tmp_path), tmp_path)
    sparse, twin = (made.load(built[name], folder) for name in ("sparse#1", "twin#1"))
    rows = parity.engine_parity(
        "sparse",
        sparse,
        {"twin": twin, "onnxruntime": ort},
        types=built["sparse#1"].inputs,
        profiles=PROFILES,
        tolerance=parity.TOLERANCE["fp16"],
    )
    for session in (sparse, twin, ort):
        session.close()
    conditions = Conditions(backend="tensorrt", device=made.describe()["gpu"], settings=made.settings())
    keep(folder, BUNDLE, list(built.values()), "tensorrt", Measurement(samples=None, timings=[], parity=rows, conditions=conditions))
    assert parity.failures(rows) == []


def test_a_shape_that_depends_on_data_is_known_after_the_run(gpu, tmp_path):
    """NonZero: how many values come out is in the values; many, few and none, and against ONNX Runtime."""
    shape = ["batch", 64]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"], name="relu"), helper.make_node("NonZero", ["r"], ["where"], name="nonzero")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("where", TensorProto.INT64, [2, "found"])],
    )
    model = tmp_path / "nonzero.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(model))
    profiles = [{"x": {"min": [1, 64], "opt": [4, 64], "max": [8, 64]}}]
    request = ArmRequest(arm="dense", repeat=1, onnx=model, onnx_arm="dense", sparse_weights=False, precision="fp32", profiles=profiles)
    made, oracle = backend("tensorrt", {"cuda_graph": True}), backend("onnxruntime", {})
    engine = made.build(request, tmp_path / "trt")
    session, ort = made.load(engine, tmp_path / "trt"), oracle.load(oracle.build(request, tmp_path / "ort"), tmp_path / "ort")
    noise = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
    one = np.zeros((4, 64), np.float32)
    one[3, 5] = 1
    for x in (noise, np.abs(noise) + 1, one, np.zeros_like(one), noise[:1]):
        np.testing.assert_array_equal(session.run({"x": x})["where"], np.stack(np.nonzero(np.maximum(x, 0))))
    sampler = session.sampler({"x": noise})
    assert sampler.settings["cuda_graph"] == "off"  # such a run cannot be captured
    assert (sampler.block(20)["gpu_compute"] > 0).all()
    rows = parity.engine_parity("dense", session, {"onnxruntime": ort}, types=engine.inputs, profiles=profiles, tolerance=1e-4)
    session.close()
    ort.close()
    assert all(row.passed for row in rows if row.probe in ("random", "rows")), rows


def test_a_plan_of_another_version_is_not_loaded(engines):
    made, built, folder = engines
    other = msgspec.structs.replace(built["twin#1"], built_with={**built["twin#1"].built_with, "tensorrt": "8.6.0"})
    with pytest.raises(InputError, match="built with TensorRT"):
        made.load(other, folder)


def test_trtexec_builds_and_times_where_it_is_installed(gpu, models, tmp_path):
    trtexec = shutil.which("trtexec") or "/usr/src/tensorrt/bin/trtexec"
    if not Path(trtexec).is_file():
        pytest.skip("no trtexec on this machine")
    made = backend("trtexec", {"trtexec": trtexec, "target_python": sys.executable})
    engine = made.build(ask(models, "sparse"), tmp_path)
    session = made.load(engine, tmp_path)
    assert (session.sampler(FEEDS).block(20)["gpu_compute"] > 0).all()
    assert session.run(FEEDS)["y"].shape == FEEDS["x"].shape
    session.close()


def test_the_bundle_reads_again(engines):
    assert reread(BUNDLE) == []
