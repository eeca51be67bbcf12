"""Movements of an array's elements: how each acts on a numpy view, and which input element an output element comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Where = tuple[Any, ...]
"""One integer array per dimension; together they broadcast to the shape of a block."""


@dataclass(frozen=True)
class Move:
    """One movement from shape `before` to shape `after`; `kind` is a key of the tables below."""

    kind: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    detail: tuple[Any, ...] = ()

    def on_array(self, array: np.ndarray) -> np.ndarray | None:
        """A view of the array after the move; None where numpy would have to copy."""
        view = _ON_ARRAY.get(self.kind)
        return view(self, array) if view else None

    def back(self, where: Where) -> Where:
        """Where the elements at `where` (in `after`) come from (in `before`)."""
        return _BACK[self.kind](self, where)

    @classmethod
    def transpose(cls, shape: tuple[int, ...], perm: tuple[int, ...]) -> Move:
        """Dimension `i` of the result is dimension `perm[i]` of the input."""
        if sorted(perm) != list(range(len(shape))):
            raise ValueError(f"perm {list(perm)} does not permute {len(shape)} dimensions")
        return cls("transpose", shape, tuple(shape[dim] for dim in perm), perm)

    @classmethod
    def reshape(cls, shape: tuple[int, ...], to: tuple[int, ...]) -> Move:
        """The same elements in C order."""
        return cls("reshape", shape, to)

    @classmethod
    def broadcast(cls, shape: tuple[int, ...], to: tuple[int, ...]) -> Move:
        """Numpy's broadcasting."""
        return cls("broadcast", shape, to)

    @classmethod
    def repeat(cls, shape: tuple[int, ...], axis: int, times: int, size: int) -> Move:
        """Every element `times` times along an axis, cut to `size` (the scales of blocked quantization)."""
        return cls("repeat", shape, (*shape[:axis], size, *shape[axis + 1 :]), (axis, times))

    @classmethod
    def cut(cls, shape: tuple[int, ...], starts: tuple[int, ...], steps: tuple[int, ...], after: tuple[int, ...]) -> Move:
        """A strided slice of every dimension."""
        return cls("cut", shape, after, (starts, steps))


def _view_reshape(move: Move, array: np.ndarray) -> np.ndarray | None:
    import numpy as np

    if array.flags.c_contiguous:
        return array.reshape(move.after)
    try:
        return np.reshape(array, move.after, copy=False)
    except (ValueError, TypeError):  # TypeError: numpy before 2.1 cannot be asked not to copy
        return None


def _view_cut(move: Move, array: np.ndarray) -> np.ndarray | None:
    starts, steps = move.detail
    if min(steps, default=1) < 1:
        return None
    return array[tuple(slice(a, a + step * size, step) for a, step, size in zip(starts, steps, move.after, strict=True))]


def _view_broadcast(move: Move, array: np.ndarray) -> np.ndarray | None:
    import numpy as np

    return np.broadcast_to(array, move.after)


def _back_transpose(move: Move, where: Where) -> Where:
    out: list[Any] = [None] * len(where)
    for at, dim in zip(where, move.detail, strict=True):
        out[dim] = at
    return tuple(out)


def _back_reshape(move: Move, where: Where) -> Where:
    import numpy as np

    flat: Any = np.zeros((), dtype=np.int64)
    for at, size in zip(where, move.after, strict=True):
        flat = flat * size + at
    out: list[Any] = []
    for size in reversed(move.before):
        out.append(flat % size)
        flat = flat // size
    return tuple(reversed(out))


def _back_broadcast(move: Move, where: Where) -> Where:
    tail = where[len(where) - len(move.before) :]
    return tuple(at * 0 if size == 1 else at for at, size in zip(tail, move.before, strict=True))


def _back_repeat(move: Move, where: Where) -> Where:
    axis, times = move.detail
    return (*where[:axis], where[axis] // times, *where[axis + 1 :])


def _back_cut(move: Move, where: Where) -> Where:
    starts, steps = move.detail
    return tuple(a + at * step for at, a, step in zip(where, starts, steps, strict=True))


_ON_ARRAY = {
    "transpose": lambda move, array: array.transpose(move.detail),
    "reshape": _view_reshape,
    "broadcast": _view_broadcast,
    "cut": _view_cut,
}
_BACK = {
    "transpose": _back_transpose,
    "reshape": _back_reshape,
    "broadcast": _back_broadcast,
    "repeat": _back_repeat,
    "cut": _back_cut,
}
