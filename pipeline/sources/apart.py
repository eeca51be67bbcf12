"""Train, select and test must be three sets of samples: the same set under two names would prove nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import combinations

from pipeline.errors import InputError
from pipeline.sources.arrays import ArraySplit
from pipeline.sources.base import Split

MOST = 0.5
"""Share of the smaller split's samples that may also be in the other: data of few possible values repeats itself by chance."""


def apart(splits: Mapping[str, Split]) -> None:
    """Refuse splits that are one object, or arrays of which more than `MOST` of the samples are the same.

    Raises:
        InputError: names the two splits.
    """
    prints = {name: _fingerprints(split) for name, split in splits.items()}
    for (first, a), (second, b) in combinations(splits.items(), 2):
        if a is b:
            raise InputError(f"the splits {first} and {second} are the same object", where="data", hint="keep them apart")
        smaller = min(len(prints[first]), len(prints[second]))
        shared = len(prints[first] & prints[second])
        if smaller and shared > MOST * smaller:
            raise InputError(f"{shared} samples are in both {first} and {second}", where="data", hint="keep the splits apart")


def _fingerprints(split: Split) -> set[bytes]:
    """A digest per distinct sample, inputs and targets together; empty for splits that are not held in memory."""
    import numpy as np

    if not isinstance(split, ArraySplit):
        return set()
    inputs, targets = split.batch(np.arange(len(split)))
    columns = [np.ascontiguousarray(values) for values in (*inputs.values(), *targets.values())]
    return {hashlib.blake2b(b"".join(values[i].tobytes() for values in columns), digest_size=16).digest() for i in range(len(split))}
