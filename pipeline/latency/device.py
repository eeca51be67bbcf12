"""Which arm was running when the device was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.records.measurement import Reading

if TYPE_CHECKING:
    from pipeline.latency.samples import Samples


def readings(samples: Samples, clocks: Sequence[tuple[int, int]]) -> list[Reading]:
    """Clocks by arm and shape.

    Args:
        samples: With the start of every block.
        clocks: (monotonic ns, MHz) of every look.

    Returns:
        One reading per arm and shape that was looked at; a look belongs to the block that began last before it.
    """
    _, first = np.unique(np.stack([samples.shape, samples.block]), axis=1, return_index=True)
    first = first[np.argsort(samples.start_ns[first], kind="stable")]
    starts = samples.start_ns[first]
    found: dict[tuple[str, str], list[float]] = {}
    for moment, mhz in clocks:
        at = int(np.searchsorted(starts, moment, side="right")) - 1
        if at >= 0:
            sample = first[at]
            key = samples.arms[samples.arm[sample]], samples.shapes[samples.shape[sample]]
            found.setdefault(key, []).append(float(mhz))
    return [Reading(arm=arm, shape=shape, clock_mhz=values) for (arm, shape), values in sorted(found.items())]
