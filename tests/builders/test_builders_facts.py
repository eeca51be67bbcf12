"""Facts, clocks and power of the target are read on the target: nvidia-smi and Jetson's tools are emulated by what they print."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from pipeline.builders.trtexec.facts import RemoteWatch, clock_warnings, machine_facts
from pipeline.builders.trtexec.target import Target

NVIDIA_SMI = """
case "$*" in *clocks_throttle_reasons*) [ -n "$NEW_DRIVER" ] && { echo "not a valid field to query"; exit 2; };; esac
case "$*" in
*name,uuid*) echo "GPU A, GPU-1, 8.6, 580.1, Enabled"; echo "GPU B, GPU-2, 9.0, 580.1, Enabled";;
*clocks.sm*_reasons.active*) case "$*" in *"-i 1"*) ;; *) exit 9;; esac
  while true; do echo "1410, 1593, 45, 210.5, 0x0000000000000004"; echo "1395, 1593, 46, 211.5, $THROTTLE"; sleep 0.05; done;;
esac
"""
TEGRASTATS = """
while true; do echo "11-30-2026 10:00:00 RAM 2/7MB EMC_FREQ 1%@2133 GR3D_FREQ 9%@[918] gpu@51.5C VDD_IN 9500mW/9000mW"; sleep 0.05; done
"""
NVPMODEL = 'echo "NV Power Mode: MAXN"; echo 0'


@pytest.fixture
def tools(tmp_path: Path):
    """Makes a target whose PATH has the given tools."""
    folder = tmp_path / "tools"
    folder.mkdir()

    def make(**scripts: str) -> Target:
        for name, script in scripts.items():
            file = folder / name.replace("_", "-")
            file.write_text(f"#!/bin/sh\n{script}")
            file.chmod(0o755)
        return Target(["env", f"PATH={folder}:{os.environ['PATH']}"], str(tmp_path / "far"))

    return make


def watched(target: Target, *, jetson: bool, doubts: list[str] | None = None, device: int = 1):
    watch = RemoteWatch(target, device, jetson=jetson, tag="t", doubts=doubts if doubts is not None else [])
    time.sleep(0.6)
    return watch.stop()


def test_the_facts_are_those_of_the_chosen_gpu(tools):
    facts = machine_facts(tools(nvidia_smi=NVIDIA_SMI), device=1)
    assert (facts["gpu"], facts["compute_capability"], facts["driver"]) == ("GPU B", "9.0", "580.1")
    assert "power_mode" not in facts


@pytest.mark.parametrize("says", ["No devices were found", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."])
def test_an_error_of_nvidia_smi_is_no_gpu(tools, says):
    assert "gpu" not in machine_facts(tools(nvidia_smi=f'echo "{says}"; exit 9'), device=0)


def test_a_number_beyond_the_last_gpu_is_no_gpu(tools):
    assert "gpu" not in machine_facts(tools(nvidia_smi=NVIDIA_SMI), device=2)


def test_what_changes_from_moment_to_moment_is_no_fact(tools):
    """Facts enter the key of a build: with a clock of the moment in them, nothing would ever be found built."""
    target = tools(x="")
    tool = Path(target.prefix[1].partition("=")[2].partition(":")[0]) / "jetson_clocks"
    seen = []
    for clock, fan in ((729600, 86), (2201600, 91)):
        lines = [
            f"cpu0: MinFreq=729600 MaxFreq=2201600 CurrentFreq={clock} IdleStates: WFI=1",
            f"FAN Dynamic Speed hwmon0_pwm1={fan}",
        ]
        lines.append(f"GPU MinFreq=306000000 MaxFreq=1300500000 CurrentFreq={clock}")
        tool.write_text("#!/bin/sh\n" + "\n".join(f'echo "{line}"' for line in lines))
        tool.chmod(0o755)
        seen.append(machine_facts(target, device=0)["jetson_clocks"])
    assert seen[0] == seen[1] == "cpu0: MinFreq=729600 MaxFreq=2201600 IdleStates: WFI=1 | GPU MinFreq=306000000 MaxFreq=1300500000"


def test_a_jetson_tells_its_power_mode(tools):
    facts = machine_facts(tools(nvpmodel=NVPMODEL), device=0)
    assert facts["power_mode"] == "NV Power Mode: MAXN | 0"
    assert "gpu" not in facts


def test_clocks_and_power_are_sampled_there(tools, monkeypatch):
    monkeypatch.setenv("THROTTLE", "0x0")
    found = watched(tools(nvidia_smi=NVIDIA_SMI), jetson=False)
    assert found.facts["sm_clock_mhz"].startswith("1395/")
    assert found.facts["throttling"] == "power cap"
    assert found.warnings == []
    moments = [look.at_ns for look in found.looks]
    assert len(moments) >= 2
    assert moments == sorted(moments)
    assert found.unobserved == ["other processes on the GPU"]


def test_a_slowdown_there_is_a_warning(tools, monkeypatch):
    monkeypatch.setenv("THROTTLE", "0x40")
    assert watched(tools(nvidia_smi=NVIDIA_SMI), jetson=False).warnings == ["the GPU was slowed down: thermal slowdown (hardware)"]


def test_a_newer_driver_is_asked_by_its_own_words(tools, monkeypatch):
    monkeypatch.setenv("NEW_DRIVER", "1")
    monkeypatch.setenv("THROTTLE", "0x40")
    found = watched(tools(nvidia_smi=NVIDIA_SMI), jetson=False)
    assert found.facts["sm_clock_mhz"].startswith("1395/")
    assert found.looks[-1].slowdown is not None


@pytest.mark.parametrize(("tool", "watts", "of"), [("nvidia_smi", 211.0, "the whole GPU"), ("tegrastats", 9.5, "the whole board")])
def test_energy_is_power_over_time(tools, tool, watts, of):
    target = tools(**{tool: {"nvidia_smi": NVIDIA_SMI, "tegrastats": TEGRASTATS}[tool]})
    watch = RemoteWatch(target, 1, jetson=tool == "tegrastats", tag="t", doubts=[])
    assert of in watch.energy_source
    time.sleep(0.3)
    before, began = watch.energy_mj(), time.perf_counter()
    time.sleep(0.6)
    used = watch.energy_mj() - before
    seconds = time.perf_counter() - began
    watch.stop()
    assert used == pytest.approx(watts * seconds * 1e3, rel=0.35)  # to a look or two, on a busy machine


def test_a_tool_that_does_not_exist_counts_nothing(tools):
    watch = RemoteWatch(tools(), 0, jetson=True, tag="t", doubts=[])
    assert watch.energy_mj() is None
    watch.stop()


JETSON_CLOCKS = """
echo "cpu0: Online=1 Governor=schedutil MinFreq=729600 MaxFreq=2201600 CurrentFreq=729600"
echo "GPU MinFreq=306000000 MaxFreq=$MAX CurrentFreq=306000000"
echo "EMC MinFreq=204000000 MaxFreq=3199000000 CurrentFreq=2133000000 FreqOverride=0"
"""


@pytest.mark.parametrize(("highest", "loose"), [("1300500000", True), ("306000000", False)])
def test_a_jetson_whose_clocks_are_not_pinned_is_told_before_tuning(tools, monkeypatch, highest, loose):
    monkeypatch.setenv("MAX", highest)
    target = tools(jetson_clocks="")
    tool = Path(target.prefix[1].partition("=")[2].partition(":")[0]) / "jetson_clocks"
    tool.write_text(f"#!/bin/sh{JETSON_CLOCKS}")
    tool.chmod(0o755)
    facts = {"jetson": "NVIDIA Jetson AGX Orin", **machine_facts(target, device=0)}
    said = clock_warnings(target, 0, facts)
    assert bool(said) == loose
    assert not loose or "between 306000000 and 1300500000 Hz: sudo jetson_clocks" in said[0]


def test_one_look_before_tuning(tools):
    once = 'case "$*" in *-lms*) exit 9;; *clocks.sm*) echo "1410, 1593, 45, 210.5, 0x0000000000000020";; *) echo "0x0";; esac'
    assert clock_warnings(tools(nvidia_smi=once), 1, {}) == ["the GPU was slowed down: thermal slowdown"]
    assert clock_warnings(tools(nvidia_smi="exit 1"), 1, {}) == []


def test_a_jetson_is_watched_by_tegrastats(tools):
    found = watched(tools(tegrastats=TEGRASTATS), jetson=True)
    assert found.facts["power_w"] == "9.5/9.5/9.5"
    assert found.facts["sm_clock_mhz"] == "918/918/918"
    assert "throttling" in found.unobserved


def test_without_a_tool_everything_is_unobserved(tools):
    found = watched(tools(), jetson=True)
    assert found.facts == {}
    assert {"sm_clock_mhz", "temperature_c", "power_w"} <= set(found.unobserved)


def test_the_tool_is_ended_with_the_watch(tools, tmp_path):
    watched(tools(tegrastats=TEGRASTATS), jetson=True)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # a process that ended meanwhile
            assert str(tmp_path / "tools" / "tegrastats").encode() not in path.read_bytes()
