"""Energy per inference on a made-up device: its clock is moved by the work, its counter moves in steps."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pipeline.latency import EnergyPlan, energy

IDLE_W = 60.0


class Device:
    """Power by arm; the counter shows what was used until its last step."""

    def __init__(self, *, step_s: float = 0.1, noise: float = 0.0, seed: int = 0) -> None:
        self.now, self.used, self.shown, self.shown_at = 0.0, 0.0, 0.0, 0.0
        self.step_s, self.noise = step_s, noise
        self.random = random.Random(seed)

    def work(self, seconds: float, watts: float) -> None:
        end = self.now + seconds
        while self.now < end:
            until = min(end, self.shown_at + self.step_s)
            self.used += (until - self.now) * watts * 1e3
            self.now = until
            if self.now >= self.shown_at + self.step_s - 1e-9:
                self.shown, self.shown_at = self.used, self.now

    def rest(self, seconds: float) -> None:
        self.work(seconds, IDLE_W)

    def meter(self) -> float | None:
        return self.shown


class Arm:
    """Runs inferences of `ms` at `watts`; as a process, after loading for a second."""

    def __init__(self, device: Device, ms: float, watts: float, *, process: bool = False) -> None:
        self.device, self.ms, self.watts = device, ms, watts
        if process:
            self.level = "process"
        self.process = process

    def block(self, count: int) -> dict[str, np.ndarray]:
        if self.process:
            self.device.work(1.0 + 0.2 * self.device.random.random(), 90.0)
        self.device.work(count * self.ms / 1e3, self.watts * (1 + self.device.noise * self.device.random.gauss(0, 1)))
        return {"gpu_compute": np.full(count, self.ms * 0.9), "host_latency": np.full(count, self.ms)}


def measured(device: Device, arms: dict[str, Arm], **plan: float):
    made = energy(arms, device.meter, shape="batch=8", how="a counter", plan=EnergyPlan(**plan), seed=3, alpha=0.025, pause=device.rest)
    return {entry.arm: entry.millijoules for entry in made.energy}, made


@pytest.mark.parametrize("step_s", [0.02, 0.1])
def test_each_arm_has_its_own_energy(step_s):
    device = Device(step_s=step_s, noise=0.01)
    found, made = measured(device, {"sparse": Arm(device, 0.8, 200.0), "dense": Arm(device, 1.0, 300.0)})
    assert found["sparse"].value == pytest.approx(160.0, rel=0.05)
    assert found["dense"].value == pytest.approx(300.0, rel=0.05)
    assert all(entry.low < entry.value < entry.high and entry.n >= 6 for entry in found.values())
    assert made.unobserved is None
    assert {entry.how for entry in made.energy} == {"a counter"}


def test_a_window_holds_nothing_of_the_arm_before():
    """Without the lead the counter would still owe the other arm's energy: a bias, which no interval shows."""
    device = Device(step_s=0.25)
    arms = {"light": Arm(device, 1.0, 50.0), "heavy": Arm(device, 1.0, 1000.0)}
    found, _ = measured(device, arms)
    assert found["light"].value == pytest.approx(50.0, rel=0.01)
    mixed, _ = measured(device, arms, lead_s=0.0)
    assert mixed["light"].value > 55.0


def test_loading_a_process_is_not_counted():
    device = Device(step_s=0.2)
    found, _ = measured(device, {"sparse": Arm(device, 2.0, 150.0, process=True)}, windows=12)
    assert found["sparse"].value == pytest.approx(300.0, rel=0.05)


def test_the_interval_holds_as_often_as_it_says():
    inside = 0
    for seed in range(200):
        device = Device(step_s=0.05, noise=0.05, seed=seed)
        found, _ = measured(device, {"sparse": Arm(device, 10.0, 200.0)}, seconds=1)
        inside += found["sparse"].low <= 2000.0 <= found["sparse"].high
    assert inside >= 182  # 95 % of 200, less three deviations


def test_the_planned_time_is_used_and_the_least_windows_are_kept():
    device = Device()
    found, _ = measured(device, {"sparse": Arm(device, 1.0, 200.0)}, seconds=26)
    assert found["sparse"].n == 20
    found, _ = measured(device, {"sparse": Arm(device, 1.0, 200.0)}, seconds=1)
    assert found["sparse"].n == 6


@pytest.mark.parametrize(
    ("meter", "words"), [(lambda: None, "energy"), (lambda: 5.0, "energy at batch=8: the meter stood still, or was lost, while sparse ran")]
)
def test_no_meter_no_energy(meter, words):
    device = Device()
    made = energy(
        {"sparse": Arm(device, 1.0, 200.0)}, meter, shape="batch=8", how="", plan=EnergyPlan(), seed=0, alpha=0.05, pause=device.rest
    )
    assert made.energy == []
    assert made.unobserved == words


def test_it_can_be_left_out():
    device = Device()
    assert measured(device, {"sparse": Arm(device, 1.0, 200.0)}, seconds=0)[1].unobserved is None
    assert device.now == 0


def test_a_process_too_short_for_its_meter_is_said():
    """Two processes that differ by less than the noise of loading: no figure, and why."""
    device = Device()

    class Free(Arm):
        def block(self, count: int) -> dict[str, np.ndarray]:
            self.device.work(1.0 if count < 11 else 0.5, 90.0)
            return {"host_latency": np.full(count, 1.0)}

    _, made = measured(device, {"sparse": Free(device, 1.0, 0.0, process=True)})
    assert made.energy == []
    assert "too short for this meter" in made.unobserved
