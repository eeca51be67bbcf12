"""The 2:4 pattern on a numpy array: in every group of 4 consecutive values along the reduction axis at least 2 are zero.

Source of the rule: TensorRT Developer Guide 8.x, "Structured Sparsity". -0.0 counts as zero, NaN does not.

Everything here reads its array in blocks of `CHUNK` values, so that memory is bounded by a block whatever the tensor's size,
and tests the stored bits (sign masked) rather than comparing numbers, which is as fast for half types as for float32.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

GROUP = 4
KEEP = 2
CHUNK = 1 << 18
"""Values in a block: large enough that numpy's cost per call is small, small enough for the cache (best of 2^15 ... 2^20)."""

LONG_RUN = 64
"""Values that lie next to each other from which on slices of them are added one by one."""

Block = tuple[slice, ...]
Reader = Callable[[Block], "np.ndarray"]


@dataclass(frozen=True)
class _Bits:
    """How a float format spells zero and what is not finite."""

    magnitude: int
    """Mask that leaves out the sign; all ones where the format has no negative zero."""
    finite: int
    """Largest magnitude that is a finite number."""


_FORMATS = {
    "float64": _Bits((1 << 63) - 1, (0x7FF << 52) - 1),
    "float32": _Bits(0x7FFFFFFF, 0x7F7FFFFF),
    "float16": _Bits(0x7FFF, 0x7BFF),
    "bfloat16": _Bits(0x7FFF, 0x7F7F),
    "float8_e4m3fn": _Bits(0x7F, 0x7E),
    "float8_e5m2": _Bits(0x7F, 0x7B),
    "float4_e2m1fn": _Bits(0x07, 0x07),
}
"""Formats judged by their bits; others (integers, fnuz floats, which have no -0.0) are compared to zero."""


@dataclass
class Facts:
    """What one pass over an array established."""

    size: int = 0
    zeros: int = 0
    """Zeros of either sign."""
    negative_zeros: int = 0
    nonfinite: int = 0
    groups: int | None = None
    """None where the reduction axis is no multiple of 4, so that there are no groups."""
    violating: int = 0
    located: list[tuple[int, ...]] = field(default_factory=list)
    """Index of the first value of the first violating groups, in the array's own coordinates."""

    @property
    def two_four(self) -> bool:
        """Whether the array is 2:4 along the axis; False where the axis is no multiple of 4."""
        return self.groups is not None and self.violating == 0


def survey(array: np.ndarray, axis: int, *, segment: int | None = None, locate: int = 8) -> Facts:
    """Count zeros, signs, non-finite values and violating groups of an array along its reduction axis.

    Args:
        array: Any shape, any dtype that compares to 0; may be a memory map or any strided view.
        axis: The reduction axis; negative counts from the end.
        segment: Where the axis holds several reductions one after the other (a grouped transposed convolution), the length
            of one: groups of 4 never straddle two of them.
        locate: How many violating groups to name.
    """
    return survey_blocks(lambda block: array[block], array.shape, axis, segment=segment, locate=locate)


def survey_blocks(read: Reader, shape: tuple[int, ...], axis: int, *, segment: int | None = None, locate: int = 8) -> Facts:
    """As `survey`, of an array that is read block by block: `read(slices)` returns the block's values."""
    axis %= len(shape)
    facts = Facts(size=prod(shape), groups=_groups(shape, axis, segment))
    tally = _Tally()
    for block in blocks(shape, axis):
        values = read(block)
        found = tally.add(values, axis if facts.groups is not None else None, facts)
        if found and len(facts.located) < locate:
            facts.located += _where(values, axis, block, locate - len(facts.located))
    return facts


def holds(read: Reader, shape: tuple[int, ...], axis: int, *, segment: int | None = None) -> bool:
    """Whether an array read block by block is 2:4 along the axis; stops at the first block that is not."""
    axis %= len(shape)
    if _groups(shape, axis, segment) is None:
        return False
    tally = _Tally()
    return not any(tally.add(read(block), axis, Facts()) for block in blocks(shape, axis))


def is_two_four(array: np.ndarray, axis: int) -> bool:
    """Whether the array is 2:4 along the axis; False where the axis is no multiple of 4."""
    return holds(lambda block: array[block], array.shape, axis)


def violations(array: np.ndarray, axis: int) -> np.ndarray | None:
    """Which groups hold more than 2 values that are not zero.

    Returns:
        bool array [outer, groups, inner] where `outer` and `inner` are the sizes before and after the axis; None where
        the axis is no multiple of 4, so that there are no groups.
    """
    import numpy as np

    axis %= array.ndim
    if array.shape[axis] % GROUP:
        return None
    outer = prod(array.shape[:axis])
    inner = prod(array.shape[axis + 1 :])
    grouped = nonzero(array).reshape(outer, array.shape[axis] // GROUP, GROUP, inner)
    return np.asarray(grouped.sum(axis=2, dtype=np.uint8) > KEEP)


def nonzero(array: np.ndarray) -> np.ndarray:
    """Bool array of the same shape: not a zero of either sign (NaN is not zero)."""
    import numpy as np

    bits = _FORMATS.get(array.dtype.name)
    if bits is None:
        return np.asarray(array != 0)
    kind = np.dtype(f"u{array.dtype.itemsize}")
    return np.asarray((np.asarray(array).view(kind) & kind.type(bits.magnitude)) != 0)


def blocks(shape: tuple[int, ...], axis: int, limit: int | None = None) -> Iterator[Block]:
    """Cut an array into blocks of at most `limit` (`CHUNK`) values, whole groups of 4 along `axis`, contiguous where it is C-ordered."""
    if 0 in shape:
        return
    limit = limit or CHUNK
    steps = list(shape)
    least = [min(GROUP, size) if dim == axis else 1 for dim, size in enumerate(shape)]
    for dim in range(len(shape)):
        rest = prod(steps) // steps[dim]
        steps[dim] = max(least[dim], min(steps[dim], limit // rest // least[dim] * least[dim]))
        if rest * least[dim] <= limit:
            break
    for starts in product(*(range(0, size, step) for size, step in zip(shape, steps, strict=True))):
        yield tuple(slice(a, min(a + step, size)) for a, step, size in zip(starts, steps, shape, strict=True))


def _groups(shape: tuple[int, ...], axis: int, segment: int | None) -> int | None:
    return None if (segment or shape[axis]) % GROUP else prod(shape) // GROUP


class _Tally:
    """Counts one block after the other; its buffers are kept from block to block and stay in the cache."""

    def __init__(self) -> None:
        self._buffers: dict[str, Any] = {}
        self._periods: dict[tuple[int, int], Any] = {}

    def add(self, values: np.ndarray, axis: int | None, facts: Facts) -> int:
        """Add a block's counts to `facts`; returns its violating groups. `axis` None: the array has no groups."""
        import numpy as np

        flat = np.require(values, requirements=["C", "A"]).reshape(-1)
        bits = _FORMATS.get(flat.dtype.name)
        if bits is None:
            flags = np.asarray(flat != 0)
            if flat.dtype.name.startswith(("float", "complex")):
                facts.nonfinite += int(flat.size - np.count_nonzero(np.isfinite(flat)))
        else:
            flags = self._flags(flat, bits, facts)
        facts.zeros += flat.size - int(np.count_nonzero(flags))
        if axis is None:
            return 0
        found = self._violating(flags.view(np.uint8), prod(values.shape[axis + 1 :]))
        facts.violating += found
        return found

    def _flags(self, flat: np.ndarray, bits: _Bits, facts: Facts) -> np.ndarray:
        """Which values are not zero, by their bits; counts negative zeros and what is not finite on the way.

        As signed integers of the same width, floats have -0.0 as their least value, and their largest is positive and not
        finite if any positive one is; as unsigned integers the largest is so among the negative ones. Three reductions tell
        that a block has nothing special, and then its bits are compared as they stand.
        """
        import numpy as np

        width = flat.dtype.itemsize
        raw, signed = flat.view(f"u{width}"), flat.view(f"i{width}")
        sign, least = bits.magnitude + 1, -(1 << (8 * width - 1))
        out = self._buffer("flags", flat.size, np.dtype(bool))
        if not flat.size:
            return out
        if int(signed.max()) > bits.finite or int(raw.max()) > sign + bits.finite:
            facts.nonfinite += int(np.count_nonzero((raw & raw.dtype.type(bits.magnitude)) > bits.finite))
        flags: np.ndarray = np.not_equal(raw, 0, out=out)
        if sign == -least and int(signed.min()) != least:
            return flags
        stored = int(np.count_nonzero(flags))
        flags = np.not_equal(raw & raw.dtype.type(bits.magnitude), 0, out=out)
        facts.negative_zeros += stored - int(np.count_nonzero(flags))
        return flags

    def _violating(self, flags: np.ndarray, inner: int) -> int:
        """Violating groups of a flat block of flags (0 or 1): the 4 members of a group lie `inner` apart.

        Where the members are neighbours, the product of their 4 bytes with 0x01010101 has their sum in its highest byte.
        Where whole rows lie between them, rows are added. Between the two (9 values of a 3x3 kernel) slices are too short for
        that: shifted sums over the whole block, of which only those at the start of a group are judged, are contiguous.
        """
        import numpy as np

        size = flags.size
        if size < GROUP * inner:
            return 0
        if inner == 1 and sys.byteorder == "little":
            words = flags.view(np.uint32)
            sums = np.multiply(words, np.uint32(0x01010101), out=self._buffer("words", words.size, words.dtype))
            over = np.greater_equal(sums, np.uint32((KEEP + 1) << 24), out=self._buffer("over", words.size, np.dtype(bool)))
            return int(np.count_nonzero(over))
        byte = flags.dtype
        if inner >= LONG_RUN:
            rows = flags.reshape(-1, GROUP, inner)
            sums = np.add(rows[:, 0], rows[:, 1], out=self._buffer("pairs", size // GROUP, byte).reshape(-1, inner))
            np.add(sums, rows[:, 2], out=sums)
            np.add(sums, rows[:, 3], out=sums)
            return int(np.count_nonzero(sums > KEEP))
        pairs = np.add(flags[:-inner], flags[inner:], out=self._buffer("pairs", size - inner, byte))
        fours = np.add(pairs[: -2 * inner], pairs[2 * inner :], out=self._buffer("fours", size - 3 * inner, byte))
        over = np.greater(fours, self._limits(inner, fours.size), out=self._buffer("over", fours.size, np.dtype(bool)))
        return int(np.count_nonzero(over))

    def _buffer(self, name: str, size: int, dtype: np.dtype) -> np.ndarray:
        import numpy as np

        held = self._buffers.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._buffers[name] = np.empty(size, dtype)
        view: np.ndarray = held[:size]
        return view

    def _limits(self, inner: int, size: int) -> np.ndarray:
        """The most non-zeros that a sum may count: 2 where a group starts, elsewhere any number."""
        import numpy as np

        key = (inner, size)
        if key not in self._periods:
            period = np.full(GROUP * inner, 255, dtype=np.uint8)
            period[:inner] = KEEP
            self._periods = {key: np.resize(period, size)}
        limits: np.ndarray = self._periods[key]
        return limits


def _where(values: np.ndarray, axis: int, block: Block, most: int) -> list[tuple[int, ...]]:
    import numpy as np

    found = violations(values, axis)
    if found is None:
        return []
    outer, inner = values.shape[:axis], values.shape[axis + 1 :]
    spots = np.argwhere(found.reshape(*outer, values.shape[axis] // GROUP, *inner))[:most]
    spots[:, axis] *= GROUP
    return [tuple(int(at) + cut.start for at, cut in zip(spot, block, strict=True)) for spot in spots]
