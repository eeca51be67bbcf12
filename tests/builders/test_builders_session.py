"""What a TensorRT session does, in which order, on a stand-in for TensorRT and CUDA that computes on the host."""

from __future__ import annotations

import fake_tensorrt as trt
import numpy as np
import pytest

from pipeline.builders.options import read_options
from pipeline.builders.tensorrt.session import PROFILE_RUNS, WARMUP, TrtSession
from pipeline.errors import InputError, StageError

WEIGHT = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
PROFILES = [{"x": {"min": [1, 6], "opt": [4, 6], "max": [8, 6]}}, {"x": {"min": [9, 6], "opt": [16, 6], "max": [64, 6]}}]


def session(*, data_dependent: bool = False, **options: object) -> tuple[TrtSession, trt.HostCuda, trt.Engine]:
    cuda, engine = trt.HostCuda(), trt.Engine(WEIGHT, data_dependent=data_dependent)
    return TrtSession(trt, engine, cuda, read_options(options), PROFILES), cuda, engine


def test_a_run_copies_computes_and_copies_back():
    made, cuda, _ = session()
    np.testing.assert_allclose(made.run({"x": X})["y"], np.maximum(X @ WEIGHT, 0), rtol=1e-6)
    assert cuda.log == ["to device", "to host", "sync"]


def test_outputs_outlive_the_next_run():
    made, _, _ = session()
    first = made.run({"x": X})["y"]
    kept = first.copy()
    made.run({"x": -X})
    np.testing.assert_array_equal(first, kept)


def test_a_shape_that_depends_on_data_is_asked_for_by_the_engine():
    made, _, _ = session(data_dependent=True)
    expected = np.maximum(X @ WEIGHT, 0)
    np.testing.assert_allclose(made.run({"x": X})["y"], expected[expected > 0], rtol=1e-6)


def test_the_profile_that_is_tuned_for_the_shape_is_used():
    made, _, engine = session()
    made.run({"x": X})
    assert "profile 0" not in engine.calls  # the first profile is active from the start
    assert made.run({"x": np.repeat(X, 5, axis=0)})["y"].shape == (20, 3)
    made.run({"x": X})
    assert [call for call in engine.calls if call != "run"] == ["profile 1", "profile 0"]
    with pytest.raises(InputError, match="no optimization profile allows"):
        made.run({"x": np.zeros((65, 6), np.float32)})


@pytest.mark.parametrize(
    ("graph", "transfers", "one"),
    [
        (True, False, ["record", "launch", "record", "record", "wait"]),
        (False, False, ["record", "record", "record", "wait"]),
        (True, True, ["to device", "record", "launch", "record", "to host", "record", "wait"]),
    ],
)
def test_each_inference_is_timed_apart(graph, transfers, one):
    made, cuda, engine = session(cuda_graph=graph, transfers=transfers)
    sampler = made.sampler({"x": X})
    assert engine.calls.count("run") == WARMUP  # a stand-in's capture runs nothing
    assert ("capture" in cuda.log) == graph
    cuda.log.clear()
    samples = sampler.block(3)
    assert cuda.log == one * 3
    assert {name: array.shape for name, array in samples.items()} == dict.fromkeys(("gpu_compute", "enqueue", "host_latency"), (3,))
    assert (samples["gpu_compute"] == 0.25).all()
    assert (samples["host_latency"] >= samples["enqueue"]).all()
    assert sampler.settings == {"cuda_graph": "on" if graph else "off", "transfers": "on" if transfers else "off"}


def test_a_data_dependent_engine_is_timed_without_a_graph_and_says_so():
    made, cuda, _ = session(data_dependent=True, cuda_graph=True)
    sampler = made.sampler({"x": X})
    assert "capture" not in cuda.log
    assert sampler.settings["cuda_graph"] == "off"


def test_waiting_spins_or_sleeps_as_asked():
    assert session(spin_wait=True)[0].sampler({"x": X})._done.spin is True
    assert session(spin_wait=False)[0].sampler({"x": X})._done.spin is False


def test_the_profiler_gives_one_mean_per_pass_without_the_warm_up():
    made, _, engine = session()
    times = made.profile({"x": X}, 3)
    assert times == {"matmul": pytest.approx([0.3] * 3), "relu": pytest.approx([0.1] * 3)}
    assert engine.calls.count("run") == 3 * (PROFILE_RUNS + 2)


def test_inputs_are_checked_before_the_engine_sees_them():
    made, _, _ = session()
    with pytest.raises(InputError, match="reads"):
        made.run({"z": X})
    with pytest.raises(InputError, match="shape"):
        made.run({"x": X[:, :5]})


def test_a_closed_session_runs_nothing_and_closes_once():
    made, cuda, _ = session()
    made.close()
    made.close()
    assert cuda.closed
    with pytest.raises(StageError, match="closed"):
        made.run({"x": X})


def test_cuda_python_has_what_graphs_need_and_its_errors_are_read():
    runtime = pytest.importorskip("cuda.bindings.runtime")
    from pipeline.builders.tensorrt import cuda

    assert cuda._graph_library() is runtime
    for name in ("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphLaunch"):
        assert callable(getattr(runtime, name))
    assert hasattr(runtime.cudaStreamCaptureMode, cuda.CAPTURE_MODE)
    assert cuda._checked((runtime.cudaError_t.cudaSuccess, 7), "nothing") == 7
    assert cuda._checked((runtime.cudaError_t.cudaSuccess,), "nothing") is None
    with pytest.raises(StageError, match="launch failed with cudaErrorInvalidValue"):
        cuda._checked((runtime.cudaError_t.cudaErrorInvalidValue, None), "launch")


def test_a_gpu_without_pycuda_or_driver_is_a_clear_error():
    from pipeline.builders.tensorrt.cuda import Cuda

    with pytest.raises(InputError, match=r"pycuda|driver|GPU 99") as caught:
        Cuda(99)
    assert caught.value.hint
