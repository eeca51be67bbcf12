"""What the target is and does: its GPU, clocks and power, read there; Jetson boards by their own tools."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping

from pipeline.builders.trtexec.hops import argv
from pipeline.builders.trtexec.target import END_PID, REMEMBER_PID, Target
from pipeline.gpu_watch import FIGURES, Look, Observation, observation

QUESTIONS: tuple[tuple[str, str], ...] = (
    ("os", "uname -srm"),
    ("gpu", "nvidia-smi --query-gpu=name,uuid,compute_cap,driver_version,persistence_mode --format=csv,noheader"),
    ("jetson", "cat /proc/device-tree/model | tr -d '\\0'"),
    ("l4t", "head -1 /etc/nv_tegra_release"),
    ("power_mode", "nvpmodel -q"),
    ("jetson_clocks", "jetson_clocks --show 2>/dev/null || sudo -n jetson_clocks --show"),
)
"""Fact -> the command that answers it there; one that does not exist leaves the fact out."""
VOLATILE = re.compile(r"(?m)^(?:fan|FAN|Fan).*\n?|[ \t]*\b(?:CurrentFreq|\w*pwm\w*)=\S+")
"""What `jetson_clocks --show` says of the moment: these facts enter the key of a build, and must be those of the machine."""
MARK = "sparsegate-fact"
GPU_FIELDS = ("gpu", "uuid", "compute_capability", "driver", "persistence_mode")
SMI_FIELDS = "clocks.sm,clocks.mem,temperature.gpu,power.draw"
WATCH_SMI = f"""reasons=clocks_throttle_reasons.active
nvidia-smi --query-gpu=$reasons --format=csv,noheader -i "$1" > /dev/null 2>&1 || reasons=clocks_event_reasons.active
exec nvidia-smi --query-gpu={SMI_FIELDS},$reasons --format=csv,noheader,nounits -lms 200 -i "$1"
"""
"""Newer drivers call the reasons events: a name that nvidia-smi does not know would cost every other field too."""
WATCH_TEGRA = "tegrastats --interval 200"
ENERGY_SOURCES = {
    "nvidia-smi": "nvidia-smi's power.draw on the target, summed over time: the whole GPU, with what it draws when idle",
    "tegrastats": "tegrastats' input power, summed over time: the whole board, its processor included",
}
STALE_NS = 2_000_000_000
"""A tool that was silent for so long has ended, or the connection has."""
JETSON_GPU = re.compile(r"\bGPU MinFreq=(?P<low>\d+) MaxFreq=(?P<high>\d+)")
"""How `jetson_clocks --show` tells between what the GPU's clock may move; pinned where the two are equal."""
TEGRA_FORMS: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("sm_clock_mhz", re.compile(r"GR3D_FREQ \d+%@\[?(\d+)"), 1.0),
    ("memory_clock_mhz", re.compile(r"EMC_FREQ \d+%@(\d+)"), 1.0),
    ("temperature_c", re.compile(r"(?:gpu|GPU)@([\d.]+)C"), 1.0),
    ("power_w", re.compile(r"(?:VDD_IN|POM_5V_IN) (\d+)(?:mW)?/"), 0.001),
)
"""Figure -> where tegrastats prints it (several generations of Jetson), and its factor."""
THROTTLE_BITS = {0x8: "HwSlowdown", 0x40: "HwThermalSlowdown", 0x20: "SwThermalSlowdown", 0x80: "HwPowerBrakeSlowdown", 0x4: "SwPowerCap"}
"""nvidia-smi's mask of throttle reasons, as NVML documents it."""


def machine_facts(target: Target, device: int) -> dict[str, str]:
    """Facts of the target that decide what is built and how fast it runs; absent where it does not tell."""
    script = "\n".join(f"echo '{MARK} {name}'; {question} 2>/dev/null || true" for name, question in QUESTIONS)
    text = target.run(["sh", "-c", script]).stdout.decode(errors="replace")
    facts: dict[str, str] = {}
    for part in text.split(f"{MARK} ")[1:]:
        name, _, answer = part.partition("\n")
        if answer.strip():
            facts[name] = answer.strip()
    rows = [[word.strip() for word in row.split(",")] for row in facts.pop("gpu", "").splitlines()]
    rows = [row for row in rows if len(row) == len(GPU_FIELDS)]  # it prints its errors where answers belong
    if device < len(rows):
        facts.update(zip(GPU_FIELDS, rows[device], strict=True))
    if "jetson_clocks" in facts:
        facts["jetson_clocks"] = VOLATILE.sub("", facts["jetson_clocks"])
    return {name: " | ".join(answer.splitlines()) for name, answer in facts.items()}


def read_smi(line: str) -> Look | None:
    """One line of WATCH_SMI; None for a line that is not one."""
    words = [word.strip() for word in line.split(",")]
    if len(words) != len(FIGURES) + 1:
        return None
    figures = {name: float(word) for name, word in zip(FIGURES, words, strict=False) if re.fullmatch(r"[\d.]+", word)}
    mask = int(words[-1], 16) if re.fullmatch(r"0x[0-9a-fA-F]+", words[-1]) else None
    slowdown = None if mask is None else [name for bit, name in THROTTLE_BITS.items() if mask & bit]
    return Look(at_ns=time.perf_counter_ns(), figures=figures, slowdown=slowdown) if figures else None


def read_tegra(line: str) -> Look | None:
    """One line of tegrastats, which tells no throttle reasons; None for a line that is not one."""
    found = {name: float(match.group(1)) * factor for name, form, factor in TEGRA_FORMS if (match := form.search(line))}
    return Look(at_ns=time.perf_counter_ns(), figures=found) if found else None


def clock_warnings(target: Target, device: int, facts: Mapping[str, str]) -> list[str]:
    """What one look at the target says against tuning on it now; empty where it tells nothing."""
    if "jetson" in facts:
        pinned = JETSON_GPU.search(facts.get("jetson_clocks", ""))
        loose = pinned is not None and pinned["low"] != pinned["high"]
        return [f"the GPU's clock moves between {pinned['low']} and {pinned['high']} Hz: sudo jetson_clocks"] if pinned and loose else []
    answer = target.run(["sh", "-c", WATCH_SMI.replace(" -lms 200", ""), "sh", str(device)]).stdout.decode(errors="replace")
    looks = [look for line in answer.splitlines() if (look := read_smi(line)) is not None]
    return observation(looks).warnings


class RemoteWatch:
    """Runs nvidia-smi or tegrastats on the target until it is stopped.

    Args:
        target: The machine.
        device: Number of the GPU there.
        jetson: Whether it is a Jetson, whose GPU nvidia-smi says nothing about.
        tag: Makes the name of its process file its own.
        doubts: What trtexec said against its times so far; what it adds until the end becomes warnings.
    """

    def __init__(self, target: Target, device: int, *, jetson: bool, tag: str, doubts: list[str]) -> None:
        self._target = target
        self._read: Callable[[str], Look | None] = read_tegra if jetson else read_smi
        self.energy_source = ENERGY_SOURCES["tegrastats" if jetson else "nvidia-smi"]
        self._pid = target.path(f"{tag}-watch.pid")
        self._doubts, self._known = doubts, len(doubts)
        self._looks: list[Look] = []
        self._power = PowerSum()
        tool = WATCH_TEGRA.split() if jetson else ["sh", "-c", WATCH_SMI, "sh", str(device)]
        self._process = subprocess.Popen(
            argv(target.prefix, ["sh", "-c", REMEMBER_PID, "sh", self._pid, *tool]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, name="remote-watch", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None  # it was opened as a pipe
        for line in self._process.stdout:
            look = self._read(line.decode(errors="replace"))
            if look is not None:
                self._looks.append(look)
                self._power.add(look)

    def energy_mj(self) -> float | None:
        """The power seen so far, summed over time, mJ; None before the first look, and once the tool has fallen silent."""
        return self._power.energy_mj(time.perf_counter_ns())

    def stop(self) -> Observation:
        """End the tool, there and here, and say what was seen."""
        self._target.run(["sh", "-c", END_PID, "sh", self._pid, "TERM"])
        self._target.remove([self._pid])
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()
        self._listener.join()
        return observation(self._looks, more=[f"trtexec: {doubt}" for doubt in self._doubts[self._known :]])


class PowerSum:
    """Energy from looks at the power, by the trapezoidal rule."""

    def __init__(self) -> None:
        self._last: tuple[int, float] | None = None
        self._mj = 0.0

    def add(self, look: Look) -> None:
        """Add what was used since the look before."""
        if "power_w" not in look.figures:
            return
        watts = look.figures["power_w"]
        if self._last is not None:
            self._mj += (self._last[1] + watts) / 2 * (look.at_ns - self._last[0]) / 1e6
        self._last = look.at_ns, watts

    def energy_mj(self, now_ns: int) -> float | None:
        """The sum; None where power was never told, or not lately."""
        return self._mj if self._last is not None and now_ns - self._last[0] <= STALE_NS else None
