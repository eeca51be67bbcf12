"""The 28 pairs of 8 columns, and the 35 ways to part 8 columns into two stripes, each half as two of those pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

_PAIRS: list[tuple[int, ...]] = list(combinations(range(8), 2))
_HALVES = [(half, tuple(c for c in range(8) if c not in half)) for half in combinations(range(8), 4) if 0 in half]
PAIRS = np.array(_PAIRS, dtype=np.int64)
"""[28, 2]: columns."""
PARTS = np.array([[*a, *b] for a, b in _HALVES], dtype=np.int64)
"""[35, 8]: the columns of the first stripe, then of the second; row 0 is the present order."""
PART_PAIRS = np.array(
    [[_PAIRS.index(a[:2]), _PAIRS.index(a[2:]), _PAIRS.index(b[:2]), _PAIRS.index(b[2:])] for a, b in _HALVES], dtype=np.int64
)
"""[35, 4]: rows of PAIRS that make up each half."""
