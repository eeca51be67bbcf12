"""What counts energy reaches the measurement's record, by arm and shape: a made-up counter stands where a GPU's would be."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from pipeline import gpu_watch, latency
from pipeline.builders.onnxruntime import OnnxRuntime, Unwatched
from pipeline.run import run

SHORT = ("measure.seconds=0.1", "measure.rounds=3", "measure.layer_passes=0", "measure.warmup_seconds=0", "measure.energy_seconds=0.1")


class TenWatts(Unwatched):
    energy_source = "a counter that says 10 W"

    def __init__(self, others: int | None = None) -> None:
        self.others = others

    def energy_mj(self) -> float | None:
        return time.perf_counter() * 1e4

    def stop(self) -> gpu_watch.Observation:
        looks = [gpu_watch.Look(at_ns=time.perf_counter_ns(), others=self.others)]
        return gpu_watch.Observation(unobserved=["processor clocks"], looks=looks)


@pytest.fixture
def measured(quickstart_run: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(latency, "EnergyPlan", partial(latency.EnergyPlan, seconds=0.1, window_s=0.02, lead_s=0.005), raising=False)
    workspace = quickstart_run.copy(tmp_path / "w")

    def go(watch: Unwatched, *overrides: str) -> Any:
        monkeypatch.setattr(OnnxRuntime, "watch", lambda self: watch)
        return run(
            quickstart_run.recipe, overrides=[*quickstart_run.overrides, *SHORT, *overrides], workspace=workspace, last="measure"
        ).measure

    return go


def test_every_arm_has_its_energy_at_every_shape(measured):
    found = measured(TenWatts())
    assert {(one.arm, one.shape) for one in found.energy} == {(arm, "batch=32") for arm in ("sparse", "twin", "dense")}
    times = {t.arm: t.quantiles["mean"].value for t in found.timings if t.metric == "host_latency" and "mean" in t.quantiles}
    for one in found.energy:
        assert one.how == "a counter that says 10 W"
        assert one.millijoules.value > 5 * times.get(one.arm, 0)  # 10 W for at least about the time of an inference
        assert one.millijoules.n >= 6


def test_it_is_measured_unasked_where_a_budget_needs_it(measured):
    rules = "gate.rules=[{kind: energy, over: dense, at_most: 1}]"
    assert measured(TenWatts(), "measure.energy_seconds=null").energy == []
    assert measured(TenWatts(), "measure.energy_seconds=null", rules).energy


def test_on_a_shared_device_there_is_none_and_it_says_why(measured):
    found = measured(TenWatts(others=2))
    assert found.energy == []
    assert any("other processes used the GPU" in text for text in found.conditions.unobserved)


def test_without_a_counter_it_is_unobserved(measured):
    found = measured(Unwatched())
    assert found.energy == []
    assert "energy" in found.conditions.unobserved
