"""Latency that can be trusted: interleaved sampling, and intervals that hold whenever sampling stops.

The doors below load on first use, so that importing this package imports no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.latency.device import readings
    from pipeline.latency.energy_pass import EnergyPlan, energy
    from pipeline.latency.plan import CONTROL_SUFFIX, Plan, Sampler, control_of
    from pipeline.latency.process import command_sampler
    from pipeline.latency.samples import Samples, Sampling
    from pipeline.latency.sampling import sample
    from pipeline.latency.summaries import absolute, between_builds, ratio, ratios, timings

_DOORS = {
    "command_sampler": "process",
    "Plan": "plan",
    "Sampler": "plan",
    "CONTROL_SUFFIX": "plan",
    "control_of": "plan",
    "Samples": "samples",
    "Sampling": "samples",
    "sample": "sampling",
    "readings": "device",
    "energy": "energy_pass",
    "EnergyPlan": "energy_pass",
    "timings": "summaries",
    "ratios": "summaries",
    "ratio": "summaries",
    "absolute": "summaries",
    "between_builds": "summaries",
}

__all__ = [
    "CONTROL_SUFFIX",
    "EnergyPlan",
    "Plan",
    "Sampler",
    "Samples",
    "Sampling",
    "absolute",
    "between_builds",
    "command_sampler",
    "control_of",
    "energy",
    "ratio",
    "ratios",
    "readings",
    "sample",
    "timings",
]


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"pipeline.latency.{_DOORS[name]}"), name)
