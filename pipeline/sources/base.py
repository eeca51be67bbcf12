"""What a model source and a data source give to the chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]


class Split(Protocol):
    """Indexable samples, batched as numpy arrays so that nothing that only measures needs torch."""

    def __len__(self) -> int: ...

    def batch(self, index: np.ndarray) -> tuple[Arrays, Arrays]:
        """Inputs by name [n, ...] float32 and targets by head [n] for the given sample numbers."""
        ...

    def slices(self) -> Mapping[str, np.ndarray]:
        """Per slicing axis (such as `class`) one label [len] per sample."""
        ...


@dataclass(frozen=True)
class Data:
    """Three splits that never mix: recovery training, model selection, final held-out test."""

    train: Split
    select: Split
    test: Split
    heads: Mapping[str, str] = field(default_factory=lambda: {"label": "accuracy"})
    """Metric by head."""


@dataclass(frozen=True)
class ModelSource:
    """How to make a fresh, untrained (or pretrained) torch model."""

    build: Callable[[], Any]
    """Returns a new `torch.nn.Module` in eval or train mode, on the CPU."""
    input_names: tuple[str, ...] = ("x",)
    heads: tuple[str, ...] = ("label",)
    """Names of the outputs, in the order in which the model returns them."""
