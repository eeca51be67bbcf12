"""The 2:4 pattern on a numpy array: in every group of 4 consecutive values along the reduction axis at least 2 are zero.

Source of the rule: TensorRT Developer Guide 8.x, "Structured Sparsity". -0.0 counts as zero, NaN does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

GROUP = 4
KEEP = 2


def violations(array: np.ndarray, axis: int) -> np.ndarray | None:
    """Which groups hold more than 2 values that are not zero.

    Args:
        array: Any shape, any dtype that compares to 0.
        axis: The reduction axis; negative counts from the end.

    Returns:
        bool array [outer, groups, inner] where `outer` and `inner` are the sizes before and after the axis; None where
        the axis is no multiple of 4, so that there are no groups.
    """
    import numpy as np

    axis %= array.ndim
    size = array.shape[axis]
    if size % GROUP:
        return None
    outer = int(np.prod(array.shape[:axis], dtype=np.int64))
    grouped = (array != 0).reshape(outer, size // GROUP, GROUP, -1)
    return np.asarray(grouped.sum(axis=2, dtype=np.uint8) > KEEP)


def is_two_four(array: np.ndarray, axis: int) -> bool:
    """Whether the array is 2:4 along the axis; False where the axis is no multiple of 4."""
    found = violations(array, axis)
    return found is not None and not bool(found.any())
