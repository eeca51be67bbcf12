"""scikit-learn's handwritten digits: 1,797 images of 8x8 pixels in 17 grey levels, part of that package."""

from __future__ import annotations

import hashlib
from importlib import metadata
from typing import TYPE_CHECKING

from pipeline.errors import InputError, MissingPackageError
from pipeline.sources.arrays import ArraySplit
from pipeline.sources.stratify import stratified

if TYPE_CHECKING:
    import numpy as np

SAMPLES = 1797


def splits(*, seed: int = 0, select: int = 247, test: int = 650, scale: int = 1) -> tuple[ArraySplit, ArraySplit, ArraySplit]:
    """Train, select and test, drawn so that every class has its share in each.

    Args:
        seed: Of the draw.
        select: Samples of the select split.
        test: Samples of the test split; the rest trains.
        scale: Each pixel becomes scale x scale pixels.
    """
    images, labels = load()
    if min(select, test) < 1 or select + test > SAMPLES - 10:
        raise InputError(f"select + test must leave training samples out of {SAMPLES}, not {select} + {test}", where="data.args")
    x = images.repeat(scale, axis=2).repeat(scale, axis=3)
    parts = stratified(labels, [SAMPLES - select - test, select, test], seed)
    train, chosen, held_out = (
        ArraySplit({"x": x[index]}, {"label": labels[index]}, name=name)
        for name, index in zip(("train", "select", "test"), parts, strict=True)
    )
    return train, chosen, held_out


def load() -> tuple[np.ndarray, np.ndarray]:
    """Images [1797, 1, 8, 8] float32 in 0..1, and class numbers [1797] int64."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingPackageError("scikit-learn", extra="train", purpose="the digits data") from None
    found = load_digits()
    return (found.images[:, None] / 16.0).astype("float32"), found.target.astype("int64")


def digests() -> dict[str, str]:
    """The version of scikit-learn stands for its data."""
    try:
        version = metadata.version("scikit-learn")
    except metadata.PackageNotFoundError:
        raise MissingPackageError("scikit-learn", extra="train", purpose="the digits data") from None
    return {"scikit-learn digits": hashlib.sha256(f"scikit-learn {version}".encode()).hexdigest()}
