"""Change single elements of tensors inside a file, and no other byte of it."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from pipeline.graph.tensors import Stored


class DoesNotFitError(Exception):
    """A number needs more bytes than the one that stands in its place."""


class Patcher:
    """Files opened for changing elements in place."""

    def __init__(self) -> None:
        self._maps: dict[Path, mmap.mmap] = {}
        self._starts: dict[int, np.ndarray] = {}

    def put(self, stored: Stored, positions: np.ndarray, values: np.ndarray) -> None:
        """Set elements of a tensor.

        Args:
            stored: The tensor; it lies in a file.
            positions: int64, flat positions of the elements.
            values: Of the tensor's type, one each, or one for all.

        Raises:
            DoesNotFitError: a variable-length number has no room for its value.
        """
        import numpy as np

        if stored.file is None:
            raise ValueError(f"{stored.name} does not lie in a file")
        data = np.frombuffer(self._map(stored.file.path), dtype=np.uint8)
        if stored.varints:
            self._put_varints(stored, data, positions, np.broadcast_to(values, positions.shape))
            return
        data[stored.offset : stored.offset + stored.flat.nbytes].view(stored.dtype)[positions] = values

    def close(self) -> None:
        """Write everything to disk."""
        for held in self._maps.values():
            held.flush()
        self._maps.clear()

    def release(self) -> None:
        """Give back the memory of pages that were changed."""
        for held in self._maps.values():
            held.flush()
            if hasattr(mmap, "MADV_DONTNEED"):
                held.madvise(mmap.MADV_DONTNEED)

    def _map(self, path: Path) -> mmap.mmap:
        if path not in self._maps:
            with path.open("r+b") as file:
                self._maps[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE)
        return self._maps[path]

    def _put_varints(self, stored: Stored, data: np.ndarray, positions: np.ndarray, values: np.ndarray) -> None:
        """Write numbers of variable length into the bytes of those before them.

        A number may be written longer than need be (its last groups of 7 bits are then 0), so a small one fits any place.
        """
        import numpy as np

        numbers = values.view(f"u{stored.dtype.itemsize}") if stored.dtype.kind not in "iu" else values
        region = data[stored.offset : stored.offset + stored.varints]
        ends = np.flatnonzero(region < 0x80)
        if ends.size != stored.flat.size:
            raise DoesNotFitError(f"int32_data holds {ends.size} numbers for {stored.flat.size} elements")
        starts = np.concatenate([[0], ends[:-1] + 1])[positions]
        lengths = ends[positions] - starts + 1
        for number in np.unique(numbers):
            here = numbers == number
            digits = _groups(int(number))
            if lengths[here].min() < len(digits):
                raise DoesNotFitError(f"the number {int(number)} does not fit into int32_data in place of another")
            for at in range(int(lengths[here].max())):
                spots = starts[here][lengths[here] > at] + at
                last = lengths[here][lengths[here] > at] == at + 1
                region[spots] = np.where(last, 0, 0x80) | (digits[at] if at < len(digits) else 0)
        stored.flat[positions] = values  # decoded beforehand, so no view of the file


def _groups(number: int) -> list[int]:
    """A number's groups of 7 bits, lowest first; a negative one takes 64 bits (protobuf's int32)."""
    number &= (1 << 64) - 1
    out = [number & 0x7F]
    while number := number >> 7:
        out.append(number & 0x7F)
    return out
