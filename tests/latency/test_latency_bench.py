"""`sparsegate bench`: real sessions of ONNX Runtime, interleaved, with an A/A comparison."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from pipeline import api
from pipeline.benching import Job, named
from pipeline.builders.feeds import random_feeds
from pipeline.builders.onnxruntime import OnnxRuntime, Unwatched
from pipeline.cli import group, main
from pipeline.errors import InputError
from pipeline.latency import Plan, Samples
from pipeline.records import io
from pipeline.records.measurement import Measurement


def save_model(path, width=64, layers=1, batch="n", kind=TensorProto.FLOAT):
    rng = np.random.default_rng(0)
    nodes, weights, name = [], [], "x"
    for at in range(layers):
        weights.append(numpy_helper.from_array((rng.standard_normal((width, width)) / 8).astype(np.float32), f"w{at}"))
        nodes.append(helper.make_node("MatMul", [name, f"w{at}"], [f"y{at}"]))
        name = f"y{at}"
    x = helper.make_tensor_value_info("x", kind, [batch, width])
    y = helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, width])
    graph = helper.make_graph(nodes, "net", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.fixture
def models(tmp_path):
    return save_model(tmp_path / "small.onnx", 256, 1), save_model(tmp_path / "large.onnx", 256, 8)


def bench(*args):
    return CliRunner().invoke(group, ["bench", *map(str, args)], catch_exceptions=False)


FAST = ("--seconds", "0.4", "--rounds", "8", "--batch", "4", "--warmup", "0.2")


def test_two_models_and_the_first_one_again(models, tmp_path):
    small, large = models
    done = bench(small, large, *FAST, "--format", "json", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    measured = io.decode(done.stdout.encode(), Measurement)
    pairs = {(r.arm, r.over, r.control): r.ratio for r in measured.ratios if r.quantile == "p50"}
    assert set(pairs) == {("large", "small", False), ("small@again", "small", True)}
    assert pairs["large", "small", False].value > 2
    assert {(t.arm, tuple(t.inputs["x"])) for t in measured.timings} == {(arm, (4, 256)) for arm in ("small", "large", "small@again")}
    assert measured.conditions.settings["inputs"] == "random"
    samples = Samples.load(tmp_path / "out" / "samples.npz")
    assert set(samples.arms) == {"small", "large", "small@again"}
    assert io.read(tmp_path / "out" / "measurement.json", Measurement) == measured


def test_text_and_md_show_the_numbers_of_the_record(models):
    small, _ = models
    assert "90 %" in bench(small, *FAST).stdout
    assert bench(small, *FAST, "--format", "md").stdout.startswith("| arms |")


def test_processes_of_their_own(models, tmp_path):
    small, _ = models
    measured = api.bench(Job(models=named([small]), processes=True), Plan(seconds=0.1, rounds=2, process_block_ms=20), folder=tmp_path)
    assert measured.conditions.settings["level"] == "process"
    samples = Samples.load(tmp_path / "samples.npz")
    assert samples.sampling["batch=1"].level == "process"
    assert set(samples.arms) == {"small", "small@again"}


def test_given_inputs_are_used(models, tmp_path):
    small, _ = models
    np.savez(tmp_path / "in.npz", x=np.ones((2, 256), np.float32))
    done = bench(small, *FAST, "--inputs", tmp_path / "in.npz", "--format", "json")
    assert json.loads(done.stdout)["conditions"]["settings"]["inputs"].endswith("in.npz")


def test_bad_input_is_one_message_and_exit_code_2(models, tmp_path, capsys):
    small, _ = models
    fixed = save_model(tmp_path / "fixed.onnx", batch=2)
    (tmp_path / "bad.onnx").write_bytes(b"\x00not onnx")
    np.savez(tmp_path / "whole.npz", x=np.ones((2, 256), np.float32))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-50])
    np.savez(tmp_path / "scalar.npz", x=np.float32(1))
    (tmp_path / "bad.npz").write_bytes(b"PK")
    for args in (
        ["absent.onnx"],
        [tmp_path / "bad.onnx"],
        [small, "--inputs", tmp_path / "bad.npz"],
        [small, "--inputs", tmp_path / "cut.npz"],
        [small, "--inputs", tmp_path / "scalar.npz"],
        [small, "--backend", "abacus"],
        [small, "--arm", "x=y"],
        [fixed, "--batch", 8],
        [tmp_path],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["bench", *map(str, args)])
        assert stopped.value.code == 2, args
        assert "Traceback" not in capsys.readouterr().err


def test_the_watch_is_ended_where_timing_fails(models, monkeypatch):
    """It may be a program on another machine, which nothing else would end."""
    ended = []

    class Watch(Unwatched):
        def stop(self):
            ended.append(True)
            return super().stop()

    monkeypatch.setattr(OnnxRuntime, "watch", lambda self: Watch())
    monkeypatch.setattr("pipeline.latency.sample", lambda *args, **more: 1 / 0, raising=False)
    with pytest.raises(ZeroDivisionError):
        bench(models[0], *FAST)
    assert ended == [True]


def test_arms_are_named_after_their_files(tmp_path):
    files = [tmp_path / "a" / "net.onnx", tmp_path / "b" / "net.onnx", tmp_path / "o d d.onnx"]
    assert list(named(files)) == ["net", "net-2", "o_d_d"]


def test_random_inputs_have_the_model_s_types_and_are_no_zeros(tmp_path):
    floats = random_feeds(save_model(tmp_path / "f.onnx"), 3, seed=0)["x"]
    assert (floats.shape, floats.dtype) == ((3, 64), np.float32)
    assert (floats != 0).all()
    whole = random_feeds(save_model(tmp_path / "i.onnx", kind=TensorProto.INT64), 3, seed=0)["x"]
    assert set(np.unique(whole)) == {0, 1}
    open_axis = save_model(tmp_path / "o.onnx", batch="n")
    model = onnx.load(open_axis)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "m"
    onnx.save(model, open_axis)
    with pytest.raises(InputError, match="axes of unknown size"):
        random_feeds(open_axis, 3, seed=0)


def test_a_job_has_defaults():
    assert Job(models={}).batches == (1,)
