"""What a head is trained towards and what of it is shown: a row per metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from pipeline.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


class Objective(msgspec.Struct, frozen=True):
    """A loss to train on, and a score to follow (higher is better)."""

    loss: Callable[[Tensor, Tensor], Tensor]
    """Outputs [n, ...] and targets [n, ...] -> a scalar."""
    score: Callable[[np.ndarray, np.ndarray], float]
    misfit: Callable[[tuple[int, ...], np.ndarray], str | None]
    """Shape of the outputs and the targets -> what is wrong between them, or None."""


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    from torch.nn.functional import cross_entropy

    return cross_entropy(outputs, targets.long())


def _sign(outputs: Tensor, targets: Tensor) -> Tensor:
    from torch.nn.functional import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(outputs.reshape(targets.shape), targets.float())


def _squared(outputs: Tensor, targets: Tensor) -> Tensor:
    from torch.nn.functional import mse_loss

    return mse_loss(outputs.reshape(targets.shape), targets.float())


def _absolute(outputs: Tensor, targets: Tensor) -> Tensor:
    from torch.nn.functional import l1_loss

    return l1_loss(outputs.reshape(targets.shape), targets.float())


def _classes_misfit(shape: tuple[int, ...], targets: np.ndarray) -> str | None:
    if len(shape) != 2 or targets.ndim != 1:
        return f"class scores [n, classes] and class numbers [n] are needed, not {list(shape)} and {list(targets.shape)}"
    if targets.min() < 0 or targets.max() >= shape[1]:
        strange = targets.max() if targets.min() >= 0 else targets.min()
        return f"the model scores {shape[1]} classes (0 to {shape[1] - 1}), the data has class {strange}"
    return None


def _values_misfit(shape: tuple[int, ...], targets: np.ndarray) -> str | None:
    import math

    if math.prod(shape) != targets.size:
        return f"outputs {list(shape)} and targets {list(targets.shape)} do not have the same number of values"
    return None


def _share_right(outputs: np.ndarray, targets: np.ndarray) -> float:
    return float((outputs.argmax(axis=1) == targets).mean())


def _share_in_top5(outputs: np.ndarray, targets: np.ndarray) -> float:
    import numpy as np

    top = np.argsort(-outputs, axis=1, kind="stable")[:, :5]
    return float((top == targets[:, None]).any(axis=1).mean())


def _share_of_signs(outputs: np.ndarray, targets: np.ndarray) -> float:
    return float(((outputs.reshape(targets.shape) > 0) == (targets > 0)).mean())


def _negative_squared(outputs: np.ndarray, targets: np.ndarray) -> float:
    return -float(((outputs.reshape(targets.shape) - targets) ** 2).mean())


def _negative_absolute(outputs: np.ndarray, targets: np.ndarray) -> float:
    return -float(abs(outputs.reshape(targets.shape) - targets).mean())


OBJECTIVES: dict[str, Objective] = {
    "accuracy": Objective(_cross_entropy, _share_right, _classes_misfit),
    "top5": Objective(_cross_entropy, _share_in_top5, _classes_misfit),
    "binary": Objective(_sign, _share_of_signs, _values_misfit),
    "mse": Objective(_squared, _negative_squared, _values_misfit),
    "mae": Objective(_absolute, _negative_absolute, _values_misfit),
}
"""Metric -> objective."""


def objectives(heads: Mapping[str, str]) -> dict[str, Objective]:
    """The objective of each head.

    Raises:
        InputError: a metric without a row.
    """
    unknown = [metric for metric in heads.values() if metric not in OBJECTIVES]
    if unknown:
        raise InputError(f"no training objective for the metric {unknown[0]!r}", where="data.heads", hint=f"known: {', '.join(OBJECTIVES)}")
    return {head: OBJECTIVES[metric] for head, metric in heads.items()}
