"""Evaluating a model or engine on the splits that trained nothing, keeping every sample's score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from pipeline.records.quality import Quality
    from pipeline.sources.base import Data, Split
    from pipeline.stages.base import Work

    Predict = Callable[[Split], Mapping[str, np.ndarray]]

SPLITS = ("select", "test")


def evaluate(predict: Predict, data: Data, *, who: str, backend: str, work: Work, splits: tuple[str, ...] = SPLITS) -> list[Quality]:
    """Score `predict`'s outputs by head and slice; per-sample scores go to `predictions/<who>.<split>.npz`.

    Args:
        predict: Maps a split to outputs by head, one row per sample in the split's order.
        data: The splits, with their heads' metrics.
        who: Names the file: `dense`, `masked`, an engine.
        backend: What computes the outputs.
        work: The stage's folder.
        splits: Which splits.
    """
    import numpy as np

    from pipeline import quality

    results = []
    for name in splits:
        split: Split = getattr(data, name)
        outputs = predict(split)
        predictions = quality.Predictions(
            heads=data.heads,
            scores=quality.score(data.heads, outputs, targets(split)),
            slices=split.slices(),
            answers={head: quality.digest(array) for head, array in outputs.items()},
        )
        path = work.folder / "predictions" / f"{who}.{name}.npz"
        predictions.save(path)
        broken = {head: quality.nonfinite(np.asarray(outputs[head])) for head in data.heads}
        results.append(quality.summarise(predictions, split=name, backend=backend, artifact=work.artifact(path), nonfinite=broken))
    return results


def targets(split: Split, size: int = 1024) -> dict[str, np.ndarray]:
    """All targets of a split by head."""
    import numpy as np

    parts = [split.batch(index)[1] for index in _chunks(len(split), size)]
    return {head: np.concatenate([part[head] for part in parts]) for head in parts[0]}


def _chunks(count: int, size: int) -> list[np.ndarray]:
    import numpy as np

    return [np.arange(start, min(start + size, count)) for start in range(0, count, size)]


def run_over(split: Split, run: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]], batch: int) -> dict[str, np.ndarray]:
    """Feed a split through an engine in batches; outputs by name, concatenated along the first axis."""
    import numpy as np

    parts = [run(split.batch(index)[0]) for index in _chunks(len(split), batch)]
    return {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}
