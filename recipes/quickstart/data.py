"""scikit-learn's handwritten digits in three splits that never mix.

It is an example of a user's own data: a callable that returns train, select and test.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from pipeline.sources import ArraySplit


def splits(seed: int = 7, select: int = 247, test: int = 650) -> dict[str, ArraySplit]:
    """1,797 images of 8x8 pixels: what neither `select` nor `test` takes is for training."""
    digits = load_digits()
    images = (digits.images[:, None] / 16.0).astype(np.float32)  # [n, 1, 8, 8], grey 0..1
    labels = digits.target.astype(np.int64)
    ink = np.where(images.mean(axis=(1, 2, 3)) > np.median(images.mean(axis=(1, 2, 3))), "heavy", "light")
    order = np.random.default_rng(seed).permutation(len(labels))
    parts = {"test": order[:test], "select": order[test : test + select], "train": order[test + select :]}
    return {
        name: ArraySplit({"x": images[index]}, {"label": labels[index]}, {"ink": ink[index]}, name=name) for name, index in parts.items()
    }
