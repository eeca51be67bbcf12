"""The trtexec backend against a stand-in executable (labelled so): builds, times, profiles, fails and is ended as the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from builder_cases import FEEDS, batch_profile, mlp, request

from pipeline.builders import backend
from pipeline.errors import ExitCode, InputError, StageError

VERSIONS = ("8.6.1", "10.3.0", "11.1.0")


@pytest.fixture
def model(tmp_path):
    return mlp(tmp_path / "m.onnx")


def build(options, model, folder, arm="sparse", repeat=1, **more):
    made = backend("trtexec", options)
    return made, made.build(request(model, arm, repeat, **more), folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_engine_is_built_timed_profiled_and_run(standin, model, tmp_path, version):
    made, engine = build(standin(version), model, tmp_path / "out")
    out = tmp_path / "out"
    assert engine.built_with["tensorrt"] == version
    assert (out / engine.plan.path).stat().st_size == engine.plan.size_bytes
    assert json.loads((out / engine.layer_info.path).read_text())["Layers"]
    session = made.load(engine, out)
    expected = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, FEEDS)[0]
    np.testing.assert_allclose(session.run(FEEDS)["y"], expected, rtol=1e-4, atol=1e-4)
    samples = session.sampler(FEEDS).block(7)
    assert {name: array.shape for name, array in samples.items()} == dict.fromkeys(("gpu_compute", "host_latency", "enqueue"), (7,))
    assert (samples["gpu_compute"] > 0).all()
    session.close()
    layers = made.profile(engine, out, FEEDS, 2)
    assert set(layers) == {"body/fc1 + body/act", "head/fc2"}
    assert all(len(passes) == 2 for passes in layers.values())


def test_what_a_stand_in_made_says_so_in_the_record(standin, model, tmp_path):
    made, engine = build(standin(), model, tmp_path / "out")
    assert "stand-in" in engine.simulated
    assert "stand-in" in made.describe()["simulated"]


@pytest.mark.parametrize("version", ["8.6.1", "11.1.0"])
def test_arms_differ_in_the_sparsity_flag_alone(standin, model, tmp_path, version):
    options = standin(version)
    sparse, twin = (build(options, model, tmp_path / "out", arm)[1] for arm in ("sparse", "twin"))
    command = lambda engine: set(engine.options["command"])  # noqa: E731
    assert command(sparse) ^ command(twin) == {"--sparsity=enable", "--sparsity=disable"}
    assert {"--avgTiming=8", "--builderOptimizationLevel=3"} <= command(sparse)


def test_a_rebuilt_arm_has_its_own_files(standin, model, tmp_path):
    _, engine = build(standin(), model, tmp_path / "out", "twin", 2)
    assert (engine.name, engine.plan.path) == ("twin#2", "twin-2.plan")


def test_the_script_reproduces_the_plan(standin, model, tmp_path):
    cache = standin(timing_cache="record")
    _, engine = build(cache, model, tmp_path / "out")
    plan = tmp_path / "out" / engine.plan.path
    before = plan.read_bytes()
    plan.unlink()
    subprocess.run(["sh", tmp_path / "out" / "sparse.reproduce.sh"], check=True, capture_output=True)
    assert plan.read_bytes() == before  # the stand-in's times come from the timing cache that was recorded


def test_replay_reads_the_recorded_cache_and_compares_tactics(standin, model, tmp_path):
    _, first = build(standin(), model, tmp_path / "a")
    recorded = tmp_path / "a" / first.timing_cache.path
    before = recorded.read_bytes()
    _, second = build(standin(timing_cache="replay", timing_cache_from=str(tmp_path / "a")), model, tmp_path / "b")
    assert recorded.read_bytes() == before
    assert second.timing_cache is None
    assert second.options["timing_cache_sha256_before"] == first.timing_cache.sha256
    assert any("tactics of all 2 layers are the recorded ones" in note for note in second.notes)
    assert "--errorOnTimingCacheMiss" in second.options["command"]


def test_a_replay_that_misses_fails_where_the_version_can(standin, tmp_path):
    build(standin(), mlp(tmp_path / "a.onnx"), tmp_path / "a")
    other = mlp(tmp_path / "b.onnx", sparse=False)
    with pytest.raises(StageError, match="Timing cache miss"):
        build(standin(timing_cache="replay", timing_cache_from=str(tmp_path / "a")), other, tmp_path / "b")


def test_a_replay_that_cannot_fail_on_a_miss_says_so(standin, model, tmp_path):
    build(standin("8.6.1"), model, tmp_path / "a")
    _, second = build(standin("8.6.1", timing_cache="replay", timing_cache_from=str(tmp_path / "a")), model, tmp_path / "b")
    assert any("cannot fail on a timing-cache miss" in note for note in second.notes)


def test_a_build_takes_nothing_of_a_broken_off_one(standin, model, tmp_path):
    """A run that is resumed builds into the folder where the last one was broken off."""
    out = tmp_path / "out"
    out.mkdir()
    for suffix in (".plan", ".cache", ".layers.json"):
        (out / f"sparse{suffix}").write_text("of another build")
    made = backend("trtexec", standin())
    made.describe()
    standin(mode="no-plan")
    with pytest.raises(StageError, match="there is no plan"):
        made.build(request(model), out)
    (out / "sparse.cache").write_text("of another build")  # the stand-in could not read it
    standin()
    engine = made.build(request(model), out)
    assert "timing_cache_sha256_before" not in engine.options


def test_gpus_are_counted_as_their_facts_are(standin, model, tmp_path):
    """nvidia-smi counts GPUs along the bus; CUDA begins with the fastest one unless it is told."""
    build(standin(), model, tmp_path / "out")
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in (tmp_path / "out" / "sparse.reproduce.sh").read_text()
    assert "--device=0" in (tmp_path / "out" / "sparse.reproduce.sh").read_text()


def test_the_targets_clocks_are_looked_at_before_tuning(standin, programs, model, tmp_path, monkeypatch):
    tool = programs / "nvidia-smi"
    tool.write_text('#!/bin/sh\ncase "$*" in *clocks.sm*) echo "300, 1593, 91, 60.1, 0x0000000000000040";; *) echo "0x0";; esac\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    _, engine = build(standin(), model, tmp_path / "out")
    assert engine.notes[0] == "before tuning: the GPU was slowed down: thermal slowdown (hardware)"


def test_a_replay_without_a_recorded_cache_is_refused(standin, model, tmp_path):
    with pytest.raises(InputError, match="no timing cache to replay"):
        build(standin(timing_cache="replay", timing_cache_from=str(tmp_path)), model, tmp_path / "b")
    with pytest.raises(InputError, match="needs a build to replay"):
        backend("trtexec", standin(timing_cache="replay"))


def test_diagnose_times_every_tactic_anew_and_more_often(standin, model, tmp_path):
    _, engine = build(standin(preset="diagnose", verbose=False), model, tmp_path / "out")
    assert {"--noBuilderCache", "--avgTiming=16", "--verbose", "--profilingVerbosity=detailed"} <= set(engine.options["command"])
    assert "Timing Runner" in (tmp_path / "out" / engine.log.path).read_text()


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("fails", "Could not find any implementation for node conv1"),
        ("killed", "ended by signal 9"),
        ("silent", "status 3"),
        ("garbage", "neither PASSED"),
        ("no-plan", "there is no plan"),
    ],
)
def test_a_build_that_ends_badly_says_why_and_keeps_its_log(standin, model, tmp_path, mode, words):
    options = standin()
    made = backend("trtexec", options)
    made.describe()
    standin(mode=mode)
    with pytest.raises(StageError, match=words) as caught:
        made.build(request(model), tmp_path / "out")
    assert caught.value.exit_code is ExitCode.STAGE
    assert (tmp_path / "out" / "sparse.log").stat().st_size > 0


@pytest.mark.parametrize("mode", ["hangs", "hangs-ignoring-term"])
def test_a_build_that_hangs_is_ended(standin, model, tmp_path, mode, monkeypatch):
    monkeypatch.setattr("pipeline.builders.trtexec.target.GRACE_S", 0.5)
    made = backend("trtexec", standin(timeout_s=3))
    made.describe()
    standin(mode=mode)
    started = time.monotonic()
    with pytest.raises(StageError, match="no end within 3 s"):
        made.build(request(model), tmp_path / "out")
    assert time.monotonic() - started < 15
    assert not running("standin/trtexec.py", str(tmp_path))


def running(*words: str) -> list[str]:
    """Command lines of processes that hold all `words`, and are not this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if all(word in line for word in words):
                found.append(line)
    return found


def test_ctrl_c_ends_the_build_on_the_target_too(standin, programs, model, tmp_path):
    folder = tmp_path / "far away"
    made = backend("trtexec", standin(command=[str(programs / "ssh"), "orin"], remote_folder=str(folder), timeout_s=60))
    made.describe()
    standin(mode="hangs")

    def interrupt() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not list(folder.glob("*.pid")):
            time.sleep(0.1)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        made.build(request(model), tmp_path / "out")
    assert not running("standin/trtexec.py", str(tmp_path))


def test_passed_after_skipped_tactics_is_noted(standin, model, tmp_path):
    _, engine = build(standin(mode="skips"), model, tmp_path / "out")
    assert any("skipped for lack of memory in 2 lines" in note and "PASSED" in note for note in engine.notes)


def test_trtexecs_own_doubts_become_warnings_of_the_measurement(standin, model, tmp_path):
    made, engine = build(standin(), model, tmp_path / "out")
    standin(mode="unstable")
    watch = made.watch()
    session = made.load(engine, tmp_path / "out")
    session.sampler(FEEDS).block(3)
    session.close()
    assert any("GPU compute time is unstable" in warning for warning in watch.stop().warnings)


def test_fewer_times_than_asked_are_an_error(standin, model, tmp_path):
    made, engine = build(standin(), model, tmp_path / "out")
    standin(mode="short-times")
    session = made.load(engine, tmp_path / "out")
    with pytest.raises(StageError, match="timed 2 inferences of 5"):
        session.sampler(FEEDS).block(5)
    session.close()


def test_what_is_no_trtexec_is_told_apart(standin, tmp_path):
    with pytest.raises(StageError, match="no banner"):
        backend("trtexec", standin(mode="not-trtexec")).describe()
    with pytest.raises(InputError, match="cannot start"):
        backend("trtexec", {"trtexec": str(tmp_path / "nothing")}).describe()
    with pytest.raises(InputError, match="cannot be started"):
        backend("trtexec", {"trtexec": str(tmp_path / "nothing"), "command": ["env"]}).describe()


HOSTILE = [
    "with blank",
    "quo'te",
    'dou"ble',
    "dol$HOME",
    "tick`id`",
    "semi;touch pwned",
    "new\nline",
    "-dash",
    "back\\slash",
    "ünï çøde",
    "a,b:c=d",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "prefix", [[], ["ssh", "-p", "2222", "orin"], ["docker", "exec", "-i", "trt"], ["ssh", "orin", "docker", "exec", "-i", "trt"]]
)
def test_file_names_arrive_as_they_are(programs, tmp_path, monkeypatch, name, prefix):
    from pipeline.builders.trtexec.target import Target

    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / name
    file.write_bytes(b"content of " + name.encode())
    target = Target(prefix, str(tmp_path / f"remote {name}"))
    place = target.push(file, name)
    assert Path(place).read_bytes() == file.read_bytes()
    assert target.pull(place, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    said = target.run([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", name, place]).stdout.decode().strip()
    assert said == ascii([name, place])
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("prefix", [["ssh", "orin"], ["docker", "exec", "-i", "trt"], ["ssh", "a", "ssh", "-i", "k e y", "b"]])
def test_the_whole_backend_over_a_prefix_with_hostile_names(standin, programs, tmp_path, monkeypatch, prefix):
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    here = tmp_path / "he re's $(id)"
    here.mkdir()
    model = mlp(here / 'mo"del; x.onnx', name="in:0", external=True)
    options = standin(command=prefix, remote_folder=str(tmp_path / "the`re $HOME"))
    profiles = [batch_profile("in:0")]
    made, engine = build(options, model, here / "out", profiles=profiles)
    session = made.load(engine, here / "out")
    feeds = {"in:0": FEEDS["x"]}
    assert session.run(feeds)["y"].shape == (4, 16)
    assert session.sampler(feeds).block(2)["gpu_compute"].shape == (2,)
    session.close()
    left = sorted(path.suffix for path in (tmp_path / "the`re $HOME").iterdir())
    assert left == [".onnx", ".plan"]  # kept under their digests, to be used again


def test_docker_without_i_is_found_out(standin, programs, model, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    options = standin(command=["docker", "exec", "trt"], remote_folder=str(tmp_path / "far"))
    with pytest.raises(StageError, match="did not arrive whole") as caught:
        build(options, model, tmp_path / "out")
    assert "-i" in caught.value.hint


@pytest.mark.parametrize("name", ["a,b", "it's"])
def test_names_that_trtexec_cannot_be_told_are_refused(standin, tmp_path, name):
    model = mlp(tmp_path / "m.onnx", name=name)
    with pytest.raises(InputError, match="cannot be told the input name"):
        build(standin(), model, tmp_path / "out", profiles=[batch_profile(name)])


def test_several_profiles_each_run_their_own_shapes(standin, model, tmp_path):
    profiles = [batch_profile(low=1, opt=1, high=4), batch_profile(low=5, opt=8, high=16)]
    made, engine = build(standin(), model, tmp_path / "out", profiles=profiles)
    session = made.load(engine, tmp_path / "out")
    assert session.run({"x": np.zeros((9, 32), np.float32)})["y"].shape == (9, 16)
    with pytest.raises(InputError, match="no optimization profile allows"):
        session.run({"x": np.zeros((17, 32), np.float32)})
    session.close()
    with pytest.raises(InputError, match="several profiles"):
        build(standin("8.6.1"), model, tmp_path / "old", profiles=profiles)


def test_a_fixed_shape_is_not_given(standin, tmp_path):
    fixed = mlp(tmp_path / "fixed.onnx", batch=4)
    made, engine = build(standin(), fixed, tmp_path / "out", profiles=[batch_profile(low=4, opt=4, high=4)])
    assert not [word for word in engine.options["command"] if "Shapes" in word]
    session = made.load(engine, tmp_path / "out")
    assert session.run(FEEDS)["y"].shape == (4, 16)
    session.close()


def test_a_plan_of_another_machine_is_not_timed(standin, model, tmp_path):
    _, engine = build(standin("10.3.0"), model, tmp_path / "out")
    with pytest.raises(InputError, match=r"built with TensorRT 10\.3\.0, here 11\.1\.0"):
        backend("trtexec", standin("11.1.0")).load(engine, tmp_path / "out")
