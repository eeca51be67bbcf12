"""What a model gets right: per-sample scores, slices, and paired comparison of two models on the same samples.

The doors below load on first use, so that importing this package imports no numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.quality.compare import Drop, level, loss
    from pipeline.quality.metrics import METRICS, Metric, nonfinite, score
    from pipeline.quality.predictions import Predictions, digest, summarise
    from pipeline.quality.slices import SliceDrop, worst_slice

_DOORS = {
    "METRICS": "metrics",
    "Metric": "metrics",
    "nonfinite": "metrics",
    "score": "metrics",
    "Predictions": "predictions",
    "digest": "predictions",
    "summarise": "predictions",
    "Drop": "compare",
    "loss": "compare",
    "level": "compare",
    "SliceDrop": "slices",
    "worst_slice": "slices",
}

__all__ = [
    "METRICS",
    "Drop",
    "Metric",
    "Predictions",
    "SliceDrop",
    "digest",
    "level",
    "loss",
    "nonfinite",
    "score",
    "summarise",
    "worst_slice",
]


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"pipeline.quality.{_DOORS[name]}"), name)
