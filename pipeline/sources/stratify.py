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
    order = rng.permutation(len(labels))
    # a place in 0..1 for every sample, evenly spaced within its class: sorting by it deals every class evenly
    place = np.empty(len(labels))
    for value in np.unique(labels):
        members = order[labels[order] == value]
        place[members] = (np.arange(len(members)) + rng.random()) / len(members)
    dealt = np.argsort(place, kind="stable")
    # the parts take turns along that order, in the proportion of their sizes
    turns = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes])
    owner = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(turns, kind="stable")]
    return [np.sort(dealt[owner == number]) for number in range(len(sizes))]
