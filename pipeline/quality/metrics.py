"""Per-sample scores of a head's outputs: one row per metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.generic]
    Scores = NDArray[np.float64]


NOT_FINITE = 1e30
"""Error of an output that is NaN or infinite: so large that no mean hides it, and still a JSON number."""


class Metric(NamedTuple):
    """One way to score a sample."""

    per_sample: Callable[[Array, Array], Scores]
    """(outputs [n, ...], targets [n, ...]) -> one score per sample [n]."""
    higher_is_better: bool
    binary: bool
    """Scores are 0 or 1: right or wrong."""
    text: str


def _accuracy(outputs: Array, targets: Array) -> Scores:
    return np.asarray(_finite_rows(outputs) & (outputs.argmax(axis=1) == targets), np.float64)


def _top5(outputs: Array, targets: Array) -> Scores:
    # rank of the label: classes that score higher, and equal ones before it (as arg-max breaks ties)
    scores = outputs.astype(np.float64)
    labelled = np.take_along_axis(scores, targets[:, None].astype(np.intp), axis=1)
    earlier = np.arange(scores.shape[1])[None, :] < targets[:, None].astype(np.intp)
    rank = ((scores > labelled) | ((scores == labelled) & earlier)).sum(axis=1)
    return np.asarray(_finite_rows(outputs) & (rank < 5), np.float64)


def _binary(outputs: Array, targets: Array) -> Scores:
    logits = outputs.reshape(len(outputs), -1)[:, 0]
    return np.asarray(
        _finite_rows(outputs) & ((logits.astype(np.float64) > 0) == (targets.reshape(len(targets)).astype(np.float64) > 0)), np.float64
    )


def _mae(outputs: Array, targets: Array) -> Scores:
    return np.asarray(np.abs(_difference(outputs, targets)).mean(axis=1))


def _mse(outputs: Array, targets: Array) -> Scores:
    return np.asarray(np.square(_difference(outputs, targets)).mean(axis=1))


METRICS: dict[str, Metric] = {
    "accuracy": Metric(_accuracy, True, True, "the largest output is the label's"),
    "top5": Metric(_top5, True, True, "the label is among the five largest outputs"),
    "binary": Metric(_binary, True, True, "the sign of the one output is that of the label (logit above 0 for label 1)"),
    "mae": Metric(_mae, False, False, "mean absolute error over a sample's outputs"),
    "mse": Metric(_mse, False, False, "mean squared error over a sample's outputs"),
}
"""By the name that a data source's `heads` uses."""


def metric_named(name: str) -> Metric:
    """The row of a metric.

    Raises:
        InputError: there is none of that name.
    """
    if name not in METRICS:
        raise InputError(f"no metric is called {name!r}", where="heads", hint=f"known metrics: {', '.join(METRICS)}")
    return METRICS[name]


def score(heads: Mapping[str, str], outputs: Mapping[str, Array], targets: Mapping[str, Array]) -> dict[str, Scores]:
    """Score every sample of every head.

    Args:
        heads: Metric by head.
        outputs: By head, outputs [n, classes] or [n, ...].
        targets: By head, labels [n] or values [n, ...].

    Returns:
        By head, float64 scores [n]. A row with NaN or infinity is wrong, its error `NOT_FINITE`.

    Raises:
        InputError: an unknown metric, a head that the outputs or targets lack, or shapes that do not fit.
    """
    scores = {}
    for head, name in heads.items():
        metric = metric_named(name)
        if head not in outputs or head not in targets:
            missing = "outputs" if head not in outputs else "targets"
            raise InputError(
                f"the {missing} have no head {head!r}",
                where=head,
                hint=f"there are: {', '.join(outputs if missing == 'outputs' else targets)}",
            )
        values, wanted = np.asarray(outputs[head]), np.asarray(targets[head])
        _require_fit(head, name, values, wanted)
        scores[head] = metric.per_sample(values, wanted)
    return scores


def _require_fit(head: str, name: str, outputs: Array, targets: Array) -> None:
    fits = outputs.ndim >= 1 and targets.ndim >= 1 and len(outputs) == len(targets)
    if fits and name in ("accuracy", "top5"):
        labels = np.issubdtype(targets.dtype, np.integer) and targets.ndim == 1 and outputs.ndim == 2
        fits = bool(labels and (len(targets) == 0 or (targets.min() >= 0 and targets.max() < outputs.shape[1])))
    elif fits and name in ("mae", "mse"):
        fits = outputs.size == targets.size
    if not fits:
        raise InputError(
            f"metric {name} cannot score outputs {outputs.dtype}{list(outputs.shape)} against targets {targets.dtype}{list(targets.shape)}",
            where=head,
            hint="labels must be whole numbers below the number of outputs, one per sample; values as many as outputs",
        )


def nonfinite(outputs: Array) -> int:
    """Samples whose outputs [n, ...] hold a NaN or an infinity."""
    return int((~_finite_rows(outputs)).sum())


def _finite_rows(outputs: Array) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(outputs.reshape(len(outputs), -1).astype(np.float64)).all(axis=1))


def _difference(outputs: Array, targets: Array) -> Scores:
    """Outputs less targets as [n, k] float64; what is not finite becomes `NOT_FINITE`."""
    flat = outputs.reshape(len(outputs), -1).astype(np.float64) - targets.reshape(len(targets), -1).astype(np.float64)
    return np.where(np.isfinite(flat), flat, NOT_FINITE)
