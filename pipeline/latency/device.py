"""Which arm was running when the device was looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.records.measurement import Reading

if TYPE_CHECKING:
    from pipeline.gpu_watch import Look
    from pipeline.latency.samples import Samples

FIGURES = {"clock_mhz": "sm_clock_mhz", "temperature_c": "temperature_c", "power_w": "power_w"}
"""Field of a reading -> figure of a look."""


def readings(samples: Samples, looks: Sequence[Look]) -> list[Reading]:
    """What the device said while each arm was timed.

    Args:
        samples: With the start of every block.
        looks: In the order of time.

    Returns:
        One reading per arm and shape that was looked at. A look belongs to the block that began last before it, but not where more time
        has passed than between any two blocks of that shape: then engines were being loaded, or sampling was over.
    """
    _, first = np.unique(np.stack([samples.shape, samples.block]), axis=1, return_index=True)
    first = first[np.argsort(samples.start_ns[first], kind="stable")]
    starts = samples.start_ns[first]
    longest = _longest(samples, first)
    found: dict[tuple[str, str], list[Look]] = {}
    for look in looks:
        at = int(np.searchsorted(starts, look.at_ns, side="right")) - 1
        if at < 0:
            continue
        shape = int(samples.shape[first[at]])
        if look.at_ns - int(starts[at]) <= longest[shape]:
            found.setdefault((samples.arms[samples.arm[first[at]]], samples.shapes[shape]), []).append(look)
    return [_reading(arm, shape, seen) for (arm, shape), seen in sorted(found.items())]


def _longest(samples: Samples, first: np.ndarray) -> dict[int, float]:
    """By shape, the longest time from the start of one block to the next, ns; without a next block, what its inferences took."""
    longest = {}
    for shape in np.unique(samples.shape[first]):
        mine = first[samples.shape[first] == shape]
        if len(mine) > 1:
            longest[int(shape)] = float(np.diff(samples.start_ns[mine]).max())
        else:
            inside = (samples.shape == shape) & (samples.metric == samples.metric[mine[0]])
            longest[int(shape)] = float(samples.ms[inside].sum()) * 1e6
    return longest


def _reading(arm: str, shape: str, looks: Sequence[Look]) -> Reading:
    figures = {field: [look.figures[name] for look in looks if name in look.figures] for field, name in FIGURES.items()}
    others = [look.others for look in looks if look.others is not None]
    return Reading(
        arm=arm,
        shape=shape,
        **figures,
        slowdown=list(dict.fromkeys(_record_name(name) for look in looks for name in look.slowdown or ())),
        other_processes=max(others) if others else None,
    )


def _record_name(reason: str) -> str:
    """`HwThermalSlowdown` -> `hw_thermal_slowdown`, as nvidia-smi writes it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", reason).lower()
