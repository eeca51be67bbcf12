"""The batches of an epoch, in order; read one ahead where the split allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pipeline.training.outputs import Split

if TYPE_CHECKING:
    import numpy as np

    Batch = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


def fetched(split: Split, parts: Sequence[np.ndarray], rng: np.random.Generator) -> Iterator[tuple[np.ndarray, Batch]]:
    """Every batch with its sample numbers.

    Args:
        split: `augmented(index, rng)` is used where it has one. Where it says `reads_ahead = True`, the next batch is read
            in a thread while this one trains: only right for splits that draw from `rng` alone, since two threads
            would share the global generators in no fixed order.
        parts: Sample numbers per batch.
        rng: For augmentation.
    """
    augmented: Callable[[np.ndarray, np.random.Generator], Batch] | None = getattr(split, "augmented", None)

    def fetch(index: np.ndarray) -> Batch:
        return augmented(index, rng) if augmented else split.batch(index)

    if not getattr(split, "reads_ahead", False):
        for index in parts:
            yield index, fetch(index)
        return
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(fetch, parts[0])
        for number, index in enumerate(parts):
            batch = ahead.result()
            if number + 1 < len(parts):
                ahead = reader.submit(fetch, parts[number + 1])
            yield index, batch
