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
"""Values up to this part of the mean magnitude are called tiny: the third value of a dense group lies far above it."""
HALF_SMALLEST_FP16 = 2.0**-25
"""A magnitude up to half of float16's smallest subnormal rounds to zero (IEEE 754, ties to even)."""
INT8_HALF_STEP = 0.5 / 127
"""With a symmetric per-tensor scale of max/127, magnitudes below this part of the maximum round to zero."""


@dataclass(frozen=True)
class Near:
    """The threshold below which values would have to be zero, beside the magnitudes of the weight."""

    threshold: float
    mean: float
    largest: float

    @property
    def causes(self) -> list[str]:
        """What makes, or would remove, values as small as the threshold; empty: they are not small."""
        found = []
        if self.threshold <= HALF_SMALLEST_FP16:
            found.append("a cast to float16 rounds them to zero")
        if self.threshold < INT8_HALF_STEP * self.largest:
            found.append("INT8 with one scale per tensor rounds them to zero")
        if self.threshold <= TINY * self.mean:
            found.append("an EMA of weights or weight decay leaves such remains")
        return found

    @property
    def text(self) -> str:
        """What it is, and what makes such values."""
        sizes = f"(mean: {self.mean:.3g}, largest: {self.largest:.3g})"
        return f"it would be 2:4 if values up to {self.threshold:.3g} {sizes} were zero: {'; '.join(self.causes)}"


def near_miss(read: pattern.Reader, shape: tuple[int, ...], axis: int) -> Near | None:
    """The threshold of a weight that is not 2:4; None where it is not small, or the weight is not finite.

    Args:
        read: Returns the values of a block.
        shape: Of the weight.
        axis: Reduction axis, a multiple of 4 long.
    """
    import numpy as np

    threshold = largest = total = 0.0
    seen = 0
    for block in pattern.blocks(shape, axis):
        with np.errstate(all="ignore"):
            size = np.abs(read(block).astype(np.float32))
            total += float(size.sum(dtype=np.float64))
        threshold = max(threshold, float(third_largest(size, axis).max()))
        largest = max(largest, float(size.max()))
        first = not seen
        seen += size.size
        if not np.isfinite(total):
            return None
        # A dense weight shows in its first block: no need to read the others.
        if first and not Near(threshold / 4, total / seen, largest).causes:
            return None
    found = Near(threshold, total / max(seen, 1), largest)
    return found if threshold > 0 and found.causes else None


def third_largest(size: np.ndarray, axis: int) -> np.ndarray:
    """Third-largest of every group of 4 along an axis, by a network of minima and maxima."""
    import numpy as np

    a, b, c, d = (size[tuple(slice(at, None, 4) if dim == axis else slice(None) for dim in range(size.ndim))] for at in range(4))
    low = np.maximum(np.minimum(a, b), np.minimum(c, d))
    high = np.minimum(np.maximum(a, b), np.maximum(c, d))
    return np.asarray(np.minimum(low, high))
