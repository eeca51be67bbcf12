"""Is a weight 2:4 but for tiny values, and what makes such values?

The threshold is exact: the smallest t such that the weight is 2:4 once every |w| <= t counts as zero, which is the largest
third-largest magnitude of a group. It is looked for only where the first block makes it plausible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline import pattern

if TYPE_CHECKING:
    import numpy as np

TINY = 0.02
"""Values up to this part of the largest magnitude are called tiny; pruned weights have third values far above it."""
HALF_SMALLEST_FP16 = 2.0**-25
"""A magnitude up to half of float16's smallest subnormal rounds to zero (IEEE 754, ties to even)."""
INT8_HALF_STEP = 0.5 / 127
"""With a symmetric per-tensor scale of max/127, magnitudes below this part of the maximum round to zero."""


@dataclass(frozen=True)
class Near:
    """The threshold below which values would have to be zero, beside the largest magnitude."""

    threshold: float
    largest: float

    @property
    def text(self) -> str:
        """What it is, and what makes such values."""
        causes = []
        if self.threshold <= HALF_SMALLEST_FP16:
            causes.append("a cast to float16 rounds them to zero")
        if self.threshold < INT8_HALF_STEP * self.largest:
            causes.append("INT8 with one scale per tensor rounds them to zero")
        causes.append("an EMA of weights or weight decay leaves such remains")
        return f"it would be 2:4 if values up to {self.threshold:.3g} (largest: {self.largest:.3g}) were zero: " + "; ".join(causes)


def near_miss(read: pattern.Reader, shape: tuple[int, ...], axis: int) -> Near | None:
    """The threshold of a weight that is not 2:4; None where it is not tiny.

    Args:
        read: Returns the values of a block.
        shape: Of the weight.
        axis: Reduction axis, a multiple of 4 long.
    """
    import numpy as np

    threshold = largest = 0.0
    for at, block in enumerate(pattern.blocks(shape, axis)):
        size = np.abs(read(block).astype(np.float32))
        if not np.isfinite(size).all():
            return None
        threshold = max(threshold, float(third_largest(size, axis).max()))
        largest = max(largest, float(size.max()))
        if at == 0 and threshold > 4 * TINY * largest:
            return None
    return Near(threshold, largest) if 0 < threshold <= TINY * largest else None


def third_largest(size: np.ndarray, axis: int) -> np.ndarray:
    """Third-largest of every group of 4 along an axis, by a network of minima and maxima."""
    import numpy as np

    a, b, c, d = (size[tuple(slice(at, None, 4) if dim == axis else slice(None) for dim in range(size.ndim))] for at in range(4))
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.asarray(np.minimum(low, high))
