"""TensorRT-RTX's real parser and builder, without a GPU, through the path that TensorRT is built with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builder_cases import FEEDS, batch_profile, mlp, request
from rtx_graphs import BAD, GOOD

from pipeline.builders import backend
from pipeline.builders.tensorrt.library import RTX, TENSORRT, Library
from pipeline.errors import ExitCode, InputError, StageError

pytest.importorskip("tensorrt_rtx")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, exported: Any) -> dict[str, Any]:
    """Every graph through the path, with the flag and without it; the quickstart's own network as fp16 among them."""
    folder = tmp_path_factory.mktemp("rtx")
    quickstart = folder / "quickstart-fp16.onnx"
    shapes = _half(exported.folder / "sparse.onnx", quickstart)
    extra = [("the quickstart's network as fp16", str(quickstart), {"profiles": [shapes], "precision": "fp16"})]
    done = subprocess.run(
        [sys.executable, str(HERE / "rtx_probe.py"), str(folder), json.dumps(extra)],
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1]}", **RTX.polygraphy_environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _half(source: Path, target: Path) -> dict[str, dict[str, list[int]]]:
    """An fp32 ONNX file as fp16 (weights and activations), with its dynamic batch."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(source))
    graph = model.graph
    for tensor in graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    del graph.value_info[:]
    onnx.save(model, str(target))
    tail = [dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim][1:]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param  # the batch is dynamic
    return {graph.input[0].name: {"min": [1, *tail], "opt": [32, *tail], "max": [64, *tail]}}


def test_there_are_enough_graphs():
    assert len(GOOD) >= 20
    assert len(BAD) >= 5


@pytest.mark.parametrize("name", [*GOOD, "the quickstart's network as fp16"])
def test_a_good_graph_builds_for_three_generations(built, name):
    answer = built[name]["sparse"]
    assert "error" not in answer, answer
    assert answer["environment"]["compute_capabilities"] == "8.6, 8.9, 12.0"
    assert "SPARSE_WEIGHTS" in answer["flags"]
    assert answer["phases"] >= 2
    assert "1" in answer["depths"]  # phases are nested
    assert {".plan", ".log"} <= set(answer["files"])


@pytest.mark.parametrize("name", BAD)
def test_a_bad_graph_is_refused_with_its_reason(built, name):
    assert BAD[name].error in built[name]["sparse"]["error"]


@pytest.mark.parametrize("name", [*GOOD, "the quickstart's network as fp16"])
def test_rtx_says_nothing_about_sparsity_and_the_flag_changes_no_byte(built, name):
    sparse, twin = built[name]["sparse"], built[name]["twin"]
    assert sparse["sha256"] == twin["sha256"]
    assert sparse["sparsity_lines"] == 0
    assert "SPARSE_WEIGHTS" not in twin["flags"]


def test_a_build_that_is_asked_to_stop_stops_at_its_next_step(built):
    assert "the build was stopped" in built["stopped"]["error"]


DIFFERENCES: tuple[tuple[str, Any, Any], ...] = (
    # field of Library -> TensorRT, TensorRT-RTX; test_the_differences_are_real says how each is known
    ("timing_cache", True, False),
    ("compute_capabilities", False, True),
    ("deserializes", True, False),
    ("api", None, (11, 4)),
)


def test_the_two_libraries_differ_in_these_rows_alone():
    names = {"name", "module", "distribution", "extra", "polygraphy_environment"}
    assert {row[0] for row in DIFFERENCES} | names == set(Library.__struct_fields__)
    for field, tensorrt, rtx in DIFFERENCES:
        assert (getattr(TENSORRT, field), getattr(RTX, field)) == (tensorrt, rtx)


def test_the_differences_are_real(tmp_path):
    import tensorrt_rtx as trt

    assert hasattr(trt, "ComputeCapability")
    assert not hasattr(trt.BuilderFlag, "FP16")  # as TensorRT 11: the file's types are obeyed
    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    config = trt.Builder(logger).create_builder_config()
    assert config.set_timing_cache(config.create_timing_cache(b"garbage"), False)  # timing caches hold nothing: any bytes are taken
    made = backend("tensorrt-rtx", {"compute_capabilities": ["8.9"]})
    engine = made.build(request(mlp(tmp_path / "m.onnx")), tmp_path / "out")
    plan = (tmp_path / "out" / engine.plan.path).read_bytes()
    assert trt.Runtime(logger).deserialize_cuda_engine(plan) is None  # needs a driver


def test_the_backend_builds_in_a_child_and_records_what_it_did(tmp_path):
    made = backend("tensorrt-rtx", {"compute_capabilities": ["8.6", "8.9"]})
    phases = []
    engine = made.build(request(mlp(tmp_path / "m.onnx")), tmp_path / "out", lambda task, done, total=None, text="": phases.append(task))
    assert engine.options["builder_flags"] == ["TF32", "SPARSE_WEIGHTS"]
    assert engine.options["timing_cache"] == "none"
    assert engine.built_with["compute_capabilities"] == "8.6, 8.9"
    assert engine.profiles == [batch_profile()]
    assert engine.timing_cache is None
    assert engine.layer_info is None
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["sparse.log", "sparse.plan"]
    assert any("Building engine" in task for task in phases)
    assert made.sparse_kernels is None


def test_two_builds_give_the_same_bytes(tmp_path):
    made = backend("tensorrt-rtx", {"compute_capabilities": ["8.9"]})
    model = mlp(tmp_path / "m.onnx")
    assert len({made.build(request(model, "twin", repeat), tmp_path / "out").plan.sha256 for repeat in (1, 2)}) == 1


def test_nothing_can_be_loaded_or_timed(tmp_path):
    made = backend("tensorrt-rtx", {"compute_capabilities": ["8.9"]})
    engine = made.build(request(mlp(tmp_path / "m.onnx")), tmp_path / "out")
    with pytest.raises(StageError, match="loads no plan"):
        made.load(engine, tmp_path / "out")
    assert made.profile(engine, tmp_path / "out", FEEDS, 3) == {}
    assert "sm_clock_mhz" in made.watch().stop().unobserved


def test_a_process_that_dies_leaves_its_log_and_a_clean_parent(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONSTARTUP", "")
    crash = tmp_path / "crash"
    crash.mkdir()
    # the library that the child imports ends the process, as a crash in the driver would
    (crash / "tensorrt_rtx.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setenv("PYTHONPATH", f"{crash}:{os.environ.get('PYTHONPATH', '')}:{HERE.parents[1]}")
    with pytest.raises(StageError, match="SIGSEGV") as caught:
        backend("tensorrt-rtx", {}).build(request(mlp(tmp_path / "m.onnx")), tmp_path / "out")
    assert caught.value.exit_code is ExitCode.STAGE
    assert caught.value.where.endswith("sparse.log")


def test_a_build_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.builders.tensorrt.parent.GRACE_S", 0.5)
    hang = tmp_path / "hang"
    hang.mkdir()
    (hang / "tensorrt_rtx.py").write_text("import time; time.sleep(300)")
    monkeypatch.setenv("PYTHONPATH", f"{hang}:{os.environ.get('PYTHONPATH', '')}:{HERE.parents[1]}")
    with pytest.raises(StageError, match="did not end within 2 s"):
        backend("tensorrt-rtx", {"timeout_s": 2}).build(request(mlp(tmp_path / "m.onnx")), tmp_path / "out")


BUSY = """
import hashlib, os, signal, sys, threading, time
from pipeline.builders.tensorrt.child import stop_request
stopped = stop_request()
def monitor():
    while not stopped():
        time.sleep(0.01)
    print("asked to stop", flush=True)
    os._exit(0)
threading.Thread(target=monitor, daemon=True).start()
print("building", flush=True)
hashlib.pbkdf2_hmac("sha256", b"in the library, without the interpreter", b"", 1 << 30)
"""


def test_a_stop_is_seen_while_the_main_thread_is_inside_the_library():
    """TensorRT calls the progress monitor from threads of its own, and a handler in Python would wait for the build's end."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "building\n"
    time.sleep(0.1)
    process.terminate()
    try:
        assert process.communicate(timeout=20)[0] == "asked to stop\n"
    finally:
        process.kill()


def test_an_interrupt_ends_the_child(tmp_path):
    made = backend("tensorrt-rtx", {})

    def interrupt(task: str, done: float, total: float | None = None, text: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.build(request(mlp(tmp_path / "m.onnx")), tmp_path / "out", interrupt)
    assert not (tmp_path / "out" / "sparse.plan").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strict_nans": "yes"}, "bool"),
        ({"optimization_level": 6}, "<= 5"),
        ({"avg_timing": 0}, ">= 1"),
        ({"typing": "loose"}, "loose"),
        ({"timing_cache": "replay"}, "needs a build to replay"),
    ],
)
def test_options_of_the_wrong_kind_are_refused(options, words):
    with pytest.raises(InputError, match=words) as caught:
        backend("tensorrt-rtx", options)
    assert caught.value.where.startswith("build")
