"""Random parts of labelled samples, with the classes in the whole's proportions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def stratified(labels: np.ndarray, sizes: list[int], seed: int) -> list[np.ndarray]:
    """Sample numbers of disjoint parts of the given sizes, each with the classes in nearly the whole's proportions.

    Args:
        labels: Class numbers [n].
        sizes: Samples of each part; they sum to n.
        seed: Of the order within each class.

    Returns:
        Ascending sample numbers, one array per part.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    values, members = np.unique(labels, return_inverse=True)
    counts = _counts(np.bincount(members, minlength=len(values)), np.asarray(sizes))
    parts: list[list[np.ndarray]] = [[] for _ in sizes]
    for number, row in enumerate(counts):
        order = rng.permutation(np.flatnonzero(members == number))
        for part, chosen in zip(parts, np.split(order, np.cumsum(row)[:-1]), strict=True):
            part.append(chosen)
    return [np.sort(np.concatenate(part)) for part in parts]


def _counts(of_class: np.ndarray, of_part: np.ndarray) -> np.ndarray:
    """Samples per class and part [classes, parts]: the proportional shares, rounded so that rows and columns keep their sums."""
    import numpy as np

    shares = np.outer(of_class, of_part) / of_class.sum()
    counts: np.ndarray = np.floor(shares).astype(int)
    rows, columns = of_class - counts.sum(axis=1), of_part - counts.sum(axis=0)
    by_remainder = np.dstack(np.unravel_index(np.argsort(counts - shares, axis=None, kind="stable"), shares.shape))[0]
    while rows.any():  # one unit per cell and pass, largest remainders first
        for row, column in by_remainder:
            if rows[row] and columns[column]:
                counts[row, column] += 1
                rows[row] -= 1
                columns[column] -= 1
    return counts
