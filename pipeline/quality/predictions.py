"""What one model scored on every sample, kept so that any two models can be compared sample by sample later."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pipeline.errors import InputError
from pipeline.quality.metrics import metric_named, score
from pipeline.records import npz
from pipeline.records.artifact import Artifact
from pipeline.records.quality import HeadQuality, Quality, Slice

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Predictions:
    """Per-sample scores of one model on one split."""

    heads: Mapping[str, str]
    """Metric by head."""
    scores: Mapping[str, NDArray[np.float64]]
    """By head, one score per sample [n], higher or lower is better as the metric says."""
    slices: Mapping[str, NDArray[np.str_]]
    """By axis, one label per sample [n]."""
    answers: Mapping[str, NDArray[np.int64]]
    """By head, the arg-max of each sample's outputs, or a digest of them: do two models say the same? [n]"""

    @classmethod
    def of(
        cls,
        heads: Mapping[str, str],
        outputs: Mapping[str, NDArray[np.generic]],
        targets: Mapping[str, NDArray[np.generic]],
        slices: Mapping[str, NDArray[np.generic]],
    ) -> Predictions:
        """Score outputs by head, as `metrics.score`, with slice labels by axis (any dtype, kept as text)."""
        return cls(
            heads=dict(heads),
            scores=score(heads, outputs, targets),
            slices={axis: np.asarray(labels).astype(np.str_) for axis, labels in slices.items()},
            answers={head: digest(np.asarray(outputs[head])) for head in heads},
        )

    def __len__(self) -> int:
        return max((len(values) for values in self.scores.values()), default=0)

    def save(self, path: Path) -> None:
        """Write a file of columns, see `records.npz`."""
        keys = _Keys(scores=list(self.scores), slices=list(self.slices), answers=list(self.answers))
        arrays = {_column(part, at): getattr(self, part)[key] for part in _PARTS for at, key in enumerate(getattr(keys, part))}
        npz.write_columns(path, _Head(dict(self.heads), keys), arrays)

    @classmethod
    def load(cls, path: Path) -> Predictions:
        """Read what `save` wrote.

        Raises:
            InputError: not such a file, too large, damaged, or its columns do not fit together.
        """
        head, found = npz.read_columns(path, _Head, _dtypes, what="predictions")
        if set(head.keys.scores) != set(head.heads):
            raise InputError("predictions are damaged: heads and scores do not fit together", where=str(path), hint="measure again")
        parts = {part: {key: found[_column(part, at)] for at, key in enumerate(getattr(head.keys, part))} for part in _PARTS}
        return cls(heads=head.heads, **parts)


_PARTS: dict[str, type[Any]] = {"scores": np.float64, "slices": np.generic, "answers": np.int64}
"""The mappings of arrays that `Predictions` holds, with their dtypes; a data source's own slice labels may be numbers."""


class _Keys(msgspec.Struct):
    """Keys of each mapping, in the order of their columns in the file."""

    scores: list[str]
    slices: list[str]
    answers: list[str]


class _Head(msgspec.Struct, array_like=True):
    """What a file says beside its columns."""

    heads: dict[str, str]
    keys: _Keys


def _column(part: str, at: int) -> str:
    """Name of a column: keys may be any text, names within an archive may not."""
    return f"{part}.{at}"


def _dtypes(head: _Head) -> dict[str, type[Any]]:
    return {_column(part, at): dtype for part, dtype in _PARTS.items() for at in range(len(getattr(head.keys, part)))}


def digest(outputs: NDArray[np.generic]) -> NDArray[np.int64]:
    """What each sample's outputs [n, k] say: the arg-max where k > 1, else 63 bits of a digest of the bytes."""
    flat = np.ascontiguousarray(outputs.reshape(len(outputs), -1))
    if flat.shape[1] > 1 and outputs.ndim == 2:
        return np.asarray(flat.argmax(axis=1), np.int64)
    hashed = [int.from_bytes(hashlib.sha256(row.tobytes()).digest()[:8], "little") >> 1 for row in flat]
    return np.array(hashed, np.int64)


def summarise(
    predictions: Predictions, *, split: str, backend: str, artifact: Artifact | None = None, nonfinite: Mapping[str, int] | None = None
) -> Quality:
    """Means overall and by slice.

    Args:
        predictions: Scores of one model.
        split: `select` or `test`.
        backend: What computed the outputs.
        artifact: Where the predictions were saved.
        nonfinite: By head, samples with a NaN or infinite output (`metrics.nonfinite`); none when absent.
    """
    heads = []
    for head, metric in predictions.heads.items():
        scores = predictions.scores[head]
        slices = [
            Slice(axis=axis, name=str(name), value=float(scores[labels == name].mean()), n=int((labels == name).sum()))
            for axis, labels in predictions.slices.items()
            for name in np.unique(labels)
        ]
        row = metric_named(metric)
        heads.append(
            HeadQuality(
                head=head,
                metric=metric,
                value=float(scores.mean()),
                n=len(scores),
                slices=slices,
                higher_is_better=row.higher_is_better,
                nonfinite=(nonfinite or {}).get(head, 0),
            )
        )
    return Quality(split=split, backend=backend, heads=heads, predictions=artifact)
