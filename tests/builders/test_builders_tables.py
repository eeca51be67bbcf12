"""Versions, flags, profiles, quoting, exports and the GPU watch: tables and rules, checked by cases and by properties."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builder_cases import batch_profile
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.builders import profiles as rules
from pipeline.builders.layer_nodes import onnx_nodes
from pipeline.builders.options import read_options
from pipeline.builders.trtexec import exports, flags
from pipeline.builders.trtexec.facts import THROTTLE_BITS, PowerSum, read_smi, read_tegra
from pipeline.builders.trtexec.hops import argv, hops
from pipeline.builders.versions import ABILITIES, banner_version, check, is_strong, parse_version
from pipeline.errors import InputError, StageError
from pipeline.gpu_watch import THROTTLES, GpuWatch, Look, throttle_bit
from pipeline.machine import nvml_number
from pipeline.records.artifact import Artifact
from pipeline.records.engines import Engine


@pytest.mark.parametrize(
    ("tag", "version"),
    [("v8402", "8.4.2"), ("v8412", "8.4.12"), ("v8601", "8.6.1"), ("v100300", "10.3.0"), ("v101401", "10.14.1"), ("v110100", "11.1.0")],
)
def test_the_banners_tag_is_read_by_its_length(tag, version):
    assert banner_version(tag) == version


@pytest.mark.parametrize("text", ["7.2.3", "8.5", "unknown", ""])
def test_what_is_too_old_or_no_version_is_refused(text):
    with pytest.raises(InputError):
        parse_version(text)


@pytest.mark.parametrize(
    ("version", "typing", "strong"),
    [("8.6.1", "auto", False), ("10.3.0", "auto", False), ("10.3.0", "strong", True), ("11.1.0", "auto", True), ("11.1.0", "strong", True)],
)
def test_typing_follows_the_version_and_the_wish(version, typing, strong):
    assert is_strong(read_options({"typing": typing}), parse_version(version)) is strong


@pytest.mark.parametrize(
    ("version", "exported", "asked", "flag"),
    [
        ("10.3.0", "fp32", "fp16", "--fp16"),
        ("10.3.0", "fp32", "bf16", "--bf16"),
        ("10.3.0", "fp16", "file", "--fp16"),
        ("8.6.1", "fp32", "fp16", "--fp16"),
    ],
)
def test_a_weak_network_may_use_another_type_than_the_files(version, exported, asked, flag):
    options = read_options({"precision": asked})
    check(options, exported, parse_version(version))
    assert flag in build_flags(version, options.allowed(exported))


@pytest.mark.parametrize(("version", "options"), [("11.1.0", {"precision": "fp16"}), ("10.3.0", {"precision": "fp16", "typing": "strong"})])
def test_a_strong_network_runs_the_files_types_alone(version, options):
    with pytest.raises(InputError, match="strongly typed"):
        check(read_options(options), "fp32", parse_version(version))
    check(read_options(options), "fp16", parse_version(version))  # the file has it already


def test_every_ability_says_why_it_is_missing():
    assert all(len(row.why) > 20 for row in ABILITIES.values())


# --- flags -------------------------------------------------------------------------------------------------------------------


def build_flags(version: str, precision: str = "fp16", profiles: Any = (), **options: Any) -> list[str]:
    return flags.build_flags(read_options(options), parse_version(version), sparse=True, precision=precision, profiles=profiles)


@pytest.mark.parametrize(
    ("version", "options", "said", "unsaid"),
    [
        ("8.6.1", {}, ["--fp16", "--sparsity=enable", "--avgTiming=8"], ["--stronglyTyped", "--noTF32"]),
        ("10.3.0", {}, ["--fp16"], ["--stronglyTyped"]),
        ("10.3.0", {"typing": "strong"}, ["--stronglyTyped"], ["--fp16"]),
        ("11.1.0", {}, [], ["--fp16", "--stronglyTyped"]),
        ("10.3.0", {"tf32": False}, ["--noTF32"], []),
        ("10.4.0", {"max_tactics": 9}, ["--maxTactics=9"], []),
        ("8.6.1", {"workspace_mib": 512}, ["--memPoolSize=workspace:512"], []),
        (
            "8.6.1",
            {"tactic_sources": ["CUDNN"]},
            ["--tacticSources=-CUBLAS,-CUBLAS_LT,+CUDNN,-EDGE_MASK_CONVOLUTIONS,-JIT_CONVOLUTIONS"],
            [],
        ),
        ("11.1.0", {"tactic_sources": ["JIT_CONVOLUTIONS"]}, ["--tacticSources=-EDGE_MASK_CONVOLUTIONS,+JIT_CONVOLUTIONS"], []),
        (
            "10.13.0",
            {"preview_features": ["RUNTIME_ACTIVATION_RESIZE_10_10"]},
            ["--preview=-aliasedPluginIO1003,+runtimeActivationResize"],
            [],
        ),
        ("10.3.0", {"verbose": False}, [], ["--verbose"]),
    ],
)
def test_meanings_become_the_versions_flags(version, options, said, unsaid):
    found = build_flags(version, **options)
    assert set(said) <= set(found)
    assert not set(unsaid) & set(found)


@pytest.mark.parametrize(
    ("version", "precision", "options", "words"),
    [
        ("8.6.1", "bf16", {}, "bf16"),
        ("10.3.0", "fp16", {"max_tactics": 9}, "max tactics"),
        ("11.1.0", "fp16", {"tactic_sources": ["CUBLAS"]}, "no CUBLAS"),
        ("10.3.0", "fp16", {"preview_features": ["NONE_SUCH"]}, "no NONE_SUCH"),
        ("10.13.0", "fp16", {"strict_nans": True}, "no flag for STRICT_NANS"),
    ],
)
def test_what_trtexec_cannot_be_told_is_refused(version, precision, options, words):
    with pytest.raises(InputError, match=words):
        build_flags(version, precision, **options)


TIMING = {
    ("10.3.0", True): {"--useCudaGraph", "--useSpinWait"},
    ("10.3.0", False): set(),
    ("11.1.0", True): set(),
    ("11.1.0", False): {"--noCudaGraph", "--noSpinWait"},
}


@pytest.mark.parametrize("version", ["10.3.0", "11.1.0"])
@pytest.mark.parametrize("on", [True, False])
def test_from_11_only_the_negations_of_the_defaults_are_flags(version, on):
    number = parse_version(version)
    assert {*flags.switch(on, "cuda graph", number), *flags.switch(on, "spin wait", number)} == TIMING[version, on]
    assert flags.switch(False, "transfers", number) == ([] if version == "11.1.0" else ["--noDataTransfers"])
    assert flags.switch(True, "transfers", number) == (["--includeDataTransfers"] if version == "11.1.0" else [])
    assert flags.say("profile in a run apart", number) == ([] if version == "11.1.0" else ["--separateProfileRun"])


def test_each_profile_stands_behind_its_number():
    found = build_flags("10.3.0", profiles=[batch_profile(opt=2), batch_profile("a:b", opt=4)])
    start = found.index("--profile=0")
    assert found[start : start + 8] == [
        "--profile=0",
        "--minShapes=x:1x32",
        "--optShapes=x:2x32",
        "--maxShapes=x:16x32",
        "--profile=1",
        "--minShapes='a:b':1x32",
        "--optShapes='a:b':4x32",
        "--maxShapes='a:b':16x32",
    ]


def as_trtexec_splits(text: str) -> dict[str, str]:
    """trtexec's own rule: at commas, then at quotes, else at the last colon."""
    found = {}
    for part in text.split(","):
        quoted = part.split("'")
        name, value = (quoted[0] + quoted[1], quoted[2][1:]) if len(quoted) == 3 else tuple(part.rpartition(":")[::2])
        found[name] = value
    return found


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=3))
def test_names_and_shapes_arrive_or_are_refused(shapes):
    values = {name: flags.dims(shape) for name, shape in shapes.items()}
    try:
        text = flags.pairs(values)
    except InputError:
        assert any("," in name or "'" in name for name in shapes)
    else:
        assert as_trtexec_splits(text) == values


# --- quoting -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "shells"),
    [
        ([], 0),
        (["ssh", "orin"], 1),
        (["ssh", "-p", "22", "-i", "ssh", "-4", "user@orin"], 1),
        (["/usr/bin/ssh", "-oPort=22", "a", "ssh", "b"], 2),
        (["docker", "exec", "-i", "trt"], 0),
        (["docker", "exec", "-i", "--name", "ssh", "trt"], 0),
        (["ssh", "orin", "docker", "exec", "-i", "trt"], 1),
        (["docker", "exec", "-i", "jump", "ssh", "orin"], 1),
        (["sudo", "-u", "me", "env", "A=1"], 0),
    ],
)
def test_only_ssh_reads_its_command_with_a_shell(prefix, shells):
    found = hops(prefix)
    assert sum(hop.shell for hop in found) == shells
    assert [word for hop in found for word in hop.words] == prefix


WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(WORDS, st.integers(1, 3))
def test_words_survive_every_shell_on_the_way(words, depth):
    line = argv(["ssh", "host"] * depth, ["printf", "%s\\0", *words])
    for _ in range(depth):  # what ssh does at each hop: join with blanks, and let a shell read it
        assert line[:2] == ["ssh", "host"]
        text = " ".join(line[2:])
        line = shlex.split(text)
    done = subprocess.run(["sh", "-c", text], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


# --- profiles ----------------------------------------------------------------------------------------------------------------

SHAPES = st.lists(st.integers(1, 6), min_size=3, max_size=3)


@given(SHAPES, SHAPES, SHAPES)
def test_a_profile_is_taken_exactly_when_its_shapes_are_in_order(low, opt, high):
    given_ = [{"x": {"min": low, "opt": opt, "max": high}}]
    in_order = all(a <= b <= c for a, b, c in zip(low, opt, high, strict=True))
    try:
        rules.check_profiles(given_, {"x": ["batch", None, -1]})
    except InputError:
        assert not in_order
    else:
        assert in_order


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ({"z": batch_profile()["x"]}, "no such input"),
        ({}, "no shapes for the dynamic input x"),
        ({"x": {"min": [1, 32], "opt": [1, 32]}}, "needs min, opt and max"),
        ({"x": {kind: [1] for kind in rules.KINDS}}, "1 axes, the input 2"),
        ({"x": {kind: [4, 31] for kind in rules.KINDS}}, "the input's axis is 32"),
        ({"x": {kind: [0, 32] for kind in rules.KINDS}}, "is 0"),
    ],
)
def test_a_profile_that_tensorrt_would_take_in_silence_is_refused(profile, words):
    with pytest.raises(InputError, match=words):
        rules.check_profiles([profile], {"x": ["batch", 32]})


def test_fixed_inputs_need_no_profile_and_dynamic_ones_do():
    rules.check_profiles([], {"x": [1, 32]})
    with pytest.raises(InputError, match="need an optimization profile"):
        rules.check_profiles([], {"x": ["batch", 32]})


@given(st.integers(1, 40))
def test_the_nearest_tuned_profile_that_allows_a_shape_is_used(batch):
    given_ = [batch_profile(low=1, opt=2, high=16), batch_profile(low=8, opt=30, high=32)]
    if batch > 32:
        with pytest.raises(InputError):
            rules.profile_of(given_, {"x": [batch, 32]})
        return
    chosen = rules.profile_of(given_, {"x": [batch, 32]})
    assert chosen == (0 if batch < 8 else 1 if batch > 16 else chosen)


def test_batches_that_no_profile_tunes_are_named():
    assert rules.untuned_batches([batch_profile(opt=8), batch_profile(opt=16)], [1, 8, 16, 32]) == [1, 32]


# --- what tools print ----------------------------------------------------------------------------------------------------------


def test_exports_are_read_as_versions_write_them(tmp_path):
    file = tmp_path / "times.json"
    rows = [{"computeMs": i, "latencyMs": i + 1, "startEnqMs": 10.0, "endEnqMs": 10.5, "endToEndMs": 3} for i in range(1, 6)]
    file.write_text(json.dumps(rows))
    found = exports.times(file, 3)
    np.testing.assert_array_equal(found["gpu_compute"], [3, 4, 5])  # the last ones: older versions export the warm-up first
    np.testing.assert_allclose(found["enqueue"], 0.5)
    file.write_text('[{ "name" : "y"\n, "dimensions" : "2x3"\n, "values" : [ 1, -nan, inf, -inf, nan, 2e-3 ]\n}]')
    np.testing.assert_array_equal(exports.outputs(file)["y"], np.array([[1, np.nan, np.inf], [-np.inf, np.nan, 2e-3]], np.float32))
    file.write_text('[{"count": 5}, {"name": "a", "averageMs": 1.0}, {"name": "a", "averageMs": 0.5}, {"name": "b", "averageMs": 2}]')
    assert exports.layer_times(file) == {"a": 1.5, "b": 2.0}


@pytest.mark.parametrize("content", ["", "[", "{}", '[{"x": 1}]', "[1, 2]", "null"])
@pytest.mark.parametrize("reader", [lambda file: exports.times(file, 1), exports.layer_times, exports.outputs])
def test_what_is_no_export_is_an_error(tmp_path, content, reader):
    file = tmp_path / "e.json"
    file.write_text(content)
    try:
        found = reader(file)
    except StageError as error:
        assert str(file) in str(error)
    else:
        assert found == {}  # an empty list of layers or outputs


def test_layer_information_names_onnx_nodes(tmp_path):
    layers = [{"Name": "a + b", "Metadata": "[ONNX Layer: a]\x1e[ONNX Layer: b]"}, {"Name": "c", "Metadata": ""}, "names only"]
    (tmp_path / "l.json").write_text(json.dumps({"Layers": layers}))
    info = Artifact.of(tmp_path / "l.json", relative_to=tmp_path)
    engine = Engine(arm="sparse", onnx_arm="sparse", plan=info, layer_info=info)
    assert onnx_nodes(engine, tmp_path, ["a + b", "c", "d"]) == {"a + b": ["a", "b"], "c": [], "d": []}


def test_nvidia_smi_and_tegrastats_lines():
    look = read_smi("1980, 1593, 41, 119.25, 0x0000000000000048\n")
    assert look.figures == {"sm_clock_mhz": 1980, "memory_clock_mhz": 1593, "temperature_c": 41, "power_w": 119.25}
    assert look.slowdown == ["HwSlowdown", "HwThermalSlowdown"]
    assert read_smi("1980, 1593, [N/A], [N/A], 0x0").figures == {"sm_clock_mhz": 1980, "memory_clock_mhz": 1593}
    assert read_smi("Failed to initialize NVML") is None
    orin = read_tegra(
        "11-30-2026 RAM 2448/7471MB CPU [1%@729] EMC_FREQ 0%@2133 GR3D_FREQ 62%@[305] cpu@46.1C gpu@45.5C VDD_IN 4500mW/4400mW"
    )
    assert orin.figures == {"sm_clock_mhz": 305, "memory_clock_mhz": 2133, "temperature_c": 45.5, "power_w": 4.5}
    assert orin.slowdown is None  # it does not tell
    assert read_smi("1980, 1593, 41, 119.25, [N/A]").slowdown is None
    assert read_tegra("nothing of the kind") is None


def test_power_is_summed_over_time():
    total = PowerSum()
    assert total.energy_mj(0) is None
    for at_ms, watts in ((0, 100.0), (200, 100.0), (400, 200.0)):
        total.add(Look(at_ns=at_ms * 1_000_000, figures={"power_w": watts}))
    total.add(Look(at_ns=500_000_000, figures={"sm_clock_mhz": 1000.0}))
    assert total.energy_mj(500_000_000) == pytest.approx(100 * 200 + 150 * 200)  # W times ms
    assert total.energy_mj(3_000_000_000) is None  # the tool has fallen silent


# --- the watch -----------------------------------------------------------------------------------------------------------------


class Nvml:
    """NVML's calls, with figures that a test sets; constants are pynvml's own."""

    class NVMLError(Exception):
        """Nothing is known."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    nvmlClocksThrottleReasonHwSlowdown, nvmlClocksEventReasonSwPowerCap = 0x8, 0x4

    def __init__(self, *, reasons: int = 0, pids: tuple[int, ...] = (), blind: bool = False) -> None:
        self.reasons, self.pids, self.blind, self.looks, self.energy = reasons, pids, blind, 0, 7

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"gpu{index}"

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        self.looks += 1
        return 1000 + 10 * self.looks if kind == 1 else 800

    def nvmlDeviceGetTemperature(self, handle: str, kind: int) -> int:
        if self.blind:
            raise self.NVMLError
        return 50

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 120_500

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return self.reasons

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        if self.blind:
            raise self.NVMLError
        self.energy += 1500
        return self.energy

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        return [SimpleNamespace(pid=pid) for pid in self.pids]


def watched(nvml: Nvml, seconds: float = 0.05) -> Any:
    watch = GpuWatch(nvml=nvml, interval_s=0.01)
    time.sleep(seconds)
    return watch.stop()


def test_a_watch_sees_clocks_heat_and_power():
    found = watched(Nvml())
    assert found.facts["power_w"] == "120.5/120.5/120.5"
    assert found.facts["temperature_c"] == "50/50/50"
    moments = [look.at_ns for look in found.looks]
    assert len(moments) >= 2
    assert moments == sorted(moments)
    assert found.warnings == []


def test_slowdowns_are_warnings_and_a_power_cap_is_a_fact():
    found = watched(Nvml(reasons=0xC))
    assert found.warnings == ["the GPU was slowed down: hardware slowdown"]
    assert found.facts["throttling"] == "hardware slowdown, power cap"


def test_each_look_has_its_own_throttle_reasons():
    nvml = Nvml(reasons=0x8)
    watch = GpuWatch(nvml=nvml, interval_s=0.01)
    time.sleep(0.05)
    nvml.reasons = 0
    time.sleep(0.05)
    looks = watch.stop().looks
    assert looks[0].slowdown == ["HwSlowdown"]
    assert looks[-1].slowdown == []


def test_the_gpus_energy_counter_is_read_in_millijoules():
    watch = GpuWatch(nvml=Nvml())
    first, second = watch.energy_mj(), watch.energy_mj()
    watch.stop()
    assert (first, second) == (1507.0, 3007.0)
    blind = GpuWatch(nvml=Nvml(blind=True))
    assert blind.energy_mj() is None  # boards before Volta have no such counter
    blind.stop()


def test_every_call_of_the_watch_is_nvmls_own():
    pynvml = pytest.importorskip("pynvml")
    assert {name for name in vars(Nvml) if name.startswith("nvmlDevice")} <= set(dir(pynvml))
    assert all(getattr(Nvml, name) == getattr(pynvml, name) for name in vars(Nvml) if name.startswith(("NVML_CLOCK", "NVML_TEMP")))


def test_other_processes_are_named_or_unobserved():
    import os

    mine = os.getpid()
    assert watched(Nvml(pids=(mine, 4711))).warnings == ["other processes used the GPU: 4711"]
    alone = watched(Nvml(pids=(mine,)))
    assert alone.warnings == []
    assert "other processes on the GPU" not in alone.unobserved
    assert "other processes on the GPU" in watched(Nvml(pids=())).unobserved  # as in a container


def test_what_a_device_does_not_tell_is_unobserved():
    assert "temperature_c" in watched(Nvml(blind=True)).unobserved


def test_without_nvml_everything_is_unobserved(monkeypatch):
    monkeypatch.setattr("pipeline.gpu_watch.nvml_module", lambda: None)
    found = GpuWatch().stop()
    assert found.facts == {}
    assert {"sm_clock_mhz", "power_w", "throttling", "other processes on the GPU"} <= set(found.unobserved)
    assert GpuWatch().energy_mj() is None


@pytest.mark.parametrize(
    ("visible", "device", "number"), [("", 1, 1), ("3", 0, 3), ("2,0", 1, 0), ("GPU-b", 0, 1), ("GPU-z", 0, 0), (" 1 , 2", 1, 2)]
)
def test_cudas_numbers_become_nvmls(monkeypatch, visible, device, number):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr("pipeline.machine.gpus", lambda: [{"uuid": "GPU-a1"}, {"uuid": "GPU-b2"}])
    assert nvml_number(device) == number


def test_throttle_reasons_are_nvmls_own():
    pynvml = pytest.importorskip("pynvml")
    assert all(throttle_bit(pynvml, name) for name in THROTTLES)
    assert {name: throttle_bit(pynvml, name) for name in THROTTLE_BITS.values()} == {name: bit for bit, name in THROTTLE_BITS.items()}
