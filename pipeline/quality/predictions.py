"""What one model scored on every sample, kept so that any two models can be compared sample by sample later."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pipeline.errors import InputError
from pipeline.quality.metrics import metric_named, score
from pipeline.records.artifact import Artifact
from pipeline.records.quality import HeadQuality, Quality, Slice

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BYTES = 4 << 30
"""Largest unpacked size that `load` accepts."""


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
        """Write a compressed .npz without pickles."""
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = {"scores": self.scores, "slices": self.slices, "answers": self.answers}
        keys = {part: list(arrays) for part, arrays in parts.items()}
        columns = {f"{part}.{index}": arrays[key] for part, arrays in parts.items() for index, key in enumerate(keys[part])}
        head = np.frombuffer(msgspec.json.encode([dict(self.heads), keys]), np.uint8)
        with path.open("wb") as file:
            np.savez_compressed(file, head=head, allow_pickle=False, **columns)

    @classmethod
    def load(cls, path: Path) -> Predictions:
        """Read what `save` wrote.

        Raises:
            InputError: not such a file, too large, damaged, or its columns do not fit together.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                if sum(item.file_size for item in archive.infolist()) > MAX_BYTES:
                    raise InputError(f"predictions would unpack to more than {MAX_BYTES >> 30} GiB", where=str(path), hint="measure again")
            with np.load(path, allow_pickle=False) as data:
                heads, keys = msgspec.json.decode(data["head"].tobytes(), type=tuple[dict[str, str], dict[str, list[str]]])
                read = {part: {key: data[f"{part}.{index}"] for index, key in enumerate(names)} for part, names in keys.items()}
            found = cls(heads=heads, scores=read["scores"], slices=read["slices"], answers=read["answers"])
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
            raise InputError(f"not a readable predictions file ({error})", where=str(path), hint="measure again") from None
        lengths = {len(column) for part in (found.scores, found.slices, found.answers) for column in part.values()}
        if len(lengths) > 1 or set(found.scores) != set(heads):
            raise InputError("predictions are damaged: columns do not fit together", where=str(path), hint="measure again")
        return found


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
