"""What a model source and a data source give to the chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]


class Split(Protocol):
    """Indexable samples, batched as numpy arrays so that nothing that only measures needs torch.

    A training split may also have `augmented(index, rng)`: like `batch`, with random changes drawn from `rng`
    (a `numpy.random.Generator`) alone, so that the same seed trains the same weights; and `reads_ahead = True` where its
    methods draw from no global generator, so that training may read the next batch in a thread.
    """

    def __len__(self) -> int: ...

    def batch(self, index: np.ndarray) -> tuple[Arrays, Arrays]:
        """Inputs by name [n, ...] float32, in the order of the model's forward(), and targets by head [n] for the given sample numbers."""
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
    """Metric by head, in the order of the model's outputs."""


@dataclass(frozen=True)
class ModelSource:
    """How to make a fresh, untrained (or pretrained) torch model."""

    build: Callable[[], Any]
    """Returns a new `torch.nn.Module` in eval or train mode, on the CPU; draws from torch's, numpy's and Python's global generators."""
    input_names: tuple[str, ...] = ("x",)
    heads: tuple[str, ...] = ("label",)
    """Names of the outputs, in the order in which the model returns them."""
    trained: bool = False
    """The weights come from `model.checkpoint`: there is no dense training."""
    onnx: Path | None = None
    """The file of an `onnx:` model, which has no torch module: `build` raises InputError."""

    def make(self, seed: int) -> Any:
        """A new module whose random initialisation depends on `seed` alone; global generators are left as they were."""
        from pipeline.sources.seeded import seeded

        with seeded(seed):
            return self.build()
