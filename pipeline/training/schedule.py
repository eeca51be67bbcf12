"""The learning rate at every step of a phase."""

from __future__ import annotations

import math
from collections.abc import Callable

SHAPES: dict[str, Callable[[float], float]] = {
    "constant": lambda _: 1.0,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
}
"""Name -> share of the peak rate when a share `done` (0..1) of the phase after warm-up is over."""


def learning_rate(step: int, steps: int, *, peak: float, shape: str, warmup: float) -> float:
    """Rate of one step, counted from 0.

    Args:
        step: This step.
        steps: Steps of the whole phase.
        peak: Largest rate.
        shape: A key of `SHAPES`.
        warmup: Steps over which the rate rises linearly to the peak.
    """
    if step < warmup:
        return peak * (step + 1) / (math.ceil(warmup) + 1)
    return peak * SHAPES[shape]((step - warmup) / max(steps - warmup, 1.0))
