"""Constant arrays that are read block by block, through any chain of transposes, reshapes, casts and scalings.

Movements of elements (transpose, reshape, slice, ...) are pushed down to the stored tensors, where numpy makes a view of
them or, where no view exists, an index per element is computed for the block that is read. What is left above them is
arithmetic, element by element. So a block of the result costs memory for that block alone, whatever the tensor's size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from pipeline.graph.moves import Move

if TYPE_CHECKING:
    import numpy as np

    from pipeline.graph.tensors import Stored

MOST_NODES = 64
"""Arithmetic nodes under one value, and moves on one leaf, before it is computed once and kept."""
MOST_BYTES = 1 << 30
"""Largest array that is computed as a whole, and kept."""

MOST_SPREAD = 1 << 26
"""Elements to which broadcasting may spread a much smaller constant."""

Index = tuple[slice, ...]


class NotFoldedError(Exception):
    """The operator's result is constant, but this program does not compute it."""


class TooLargeError(Exception):
    """A constant would have to be computed as a whole and is too large for that."""


class Value(ABC):
    """A constant array of known shape and type."""

    shape: tuple[int, ...]
    dtype: np.dtype
    nodes: int

    @abstractmethod
    def read(self, index: Index) -> np.ndarray:
        """The values of one block."""

    @abstractmethod
    def moved(self, move: Move, memo: dict[int, Value] | None = None) -> Value:
        """The array after one movement of its elements."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def array(self) -> np.ndarray:
        """All values at once.

        Raises:
            TooLargeError: more than `MOST_BYTES`.
        """
        if self.size * self.dtype.itemsize > MOST_BYTES:
            raise TooLargeError(f"an array of shape {list(self.shape)} would have to be computed as a whole")
        return self.read(tuple(slice(0, size) for size in self.shape))


@dataclass
class Leaf(Value):
    """A stored tensor behind zero or more movements of its elements."""

    stored: Stored | None
    """Where the values come from; None: computed."""
    view: np.ndarray
    """The values as far as numpy could follow the moves without a copy; bytes where the type is packed."""
    shape: tuple[int, ...]
    dtype: np.dtype
    moves: tuple[Move, ...] = ()
    """All moves since the stored tensor."""
    seen: int = 0
    """How many of `moves` are in `view` already."""
    bits: int = 8
    """Width of a packed element; 8: not packed."""
    nodes: int = field(default=1, init=False)

    def read(self, index: Index) -> np.ndarray:
        """The values of one block."""
        rest = self.moves[self.seen :]
        if self.bits == 8 and not rest:
            return self.view[index]
        import numpy as np

        if self.bits != 8:
            return _unpack(self.view, self.positions(index), self.bits, self.dtype)
        where = _trace_back(rest, self.shape, index)
        return np.broadcast_to(self.view[where], _extent(self.shape, index))

    def positions(self, index: Index) -> np.ndarray:
        """Flat position in the stored tensor of every element of a block, as int64."""
        import numpy as np

        flat: Any = np.zeros((), dtype=np.int64)
        before = self.moves[0].before if self.moves else self.shape
        for at, size in zip(_trace_back(self.moves, self.shape, index), before, strict=True):
            flat = flat * size + at
        return np.broadcast_to(flat, _extent(self.shape, index))

    def moved(self, move: Move, memo: dict[int, Value] | None = None) -> Value:
        """The same tensor behind one more move."""
        if len(self.moves) >= MOST_NODES:
            computed = self.array()
            return of_array(computed).moved(move)
        view = move.on_array(self.view) if self.bits == 8 and self.seen == len(self.moves) else None
        return Leaf(
            stored=self.stored,
            view=self.view if view is None else view,
            shape=move.after,
            dtype=self.dtype,
            moves=(*self.moves, move),
            seen=self.seen if view is None else self.seen + 1,
            bits=self.bits,
        )


@dataclass
class Computed(Value):
    """Arithmetic on arrays of one shape, element by element."""

    how: Callable[..., np.ndarray]
    inputs: tuple[Value, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    name: str
    nodes: int

    def read(self, index: Index) -> np.ndarray:
        """Compute one block; a shared part is computed once."""
        done: dict[int, np.ndarray] = {}
        stack: list[Value] = [self]
        while stack:
            value = stack[-1]
            if not isinstance(value, Computed):
                done[id(stack.pop())] = value.read(index)
                continue
            missing = [part for part in value.inputs if id(part) not in done]
            if missing:
                stack += missing
                continue
            done[id(stack.pop())] = value.how(*(done[id(part)] for part in value.inputs))
        return done[id(self)]

    def moved(self, move: Move, memo: dict[int, Value] | None = None) -> Value:
        """The same arithmetic on moved inputs: for elementwise functions the two commute."""
        memo = {} if memo is None else memo
        for part in self.inputs:
            if id(part) not in memo:
                memo[id(part)] = part.moved(move, memo)
        return Computed(self.how, tuple(memo[id(part)] for part in self.inputs), move.after, self.dtype, self.name, self.nodes)


def of_array(array: np.ndarray) -> Leaf:
    """A computed array as a value."""
    return Leaf(stored=None, view=array, shape=array.shape, dtype=array.dtype)


def computed(name: str, how: Callable[..., np.ndarray], inputs: Sequence[Value], dtype: np.dtype) -> Value:
    """Elementwise arithmetic on inputs that are broadcast to one shape.

    Raises:
        ValueError: the shapes do not broadcast.
        TooLargeError: a long chain had to be computed as a whole and is too large.
    """
    import numpy as np

    shape = np.broadcast_shapes(*(value.shape for value in inputs))
    refuse_spread(shape, max(value.size for value in inputs))
    parts = tuple(broadcast(value, shape) for value in inputs)
    made = Computed(how, parts, shape, dtype, name, 1 + sum(part.nodes for part in parts))
    return of_array(made.array()) if made.nodes > MOST_NODES else made


def refuse_spread(shape: tuple[int, ...], stored: int) -> None:
    """Refuse to work through a shape that a file blows up from a few values.

    Raises:
        TooLargeError: the shape has more than `MOST_SPREAD` elements and many more than are stored.
    """
    if prod(shape) > max(MOST_SPREAD, 4 * stored):
        raise TooLargeError(f"{stored} values are spread to a shape of {list(shape)}")


def broadcast(value: Value, shape: tuple[int, ...]) -> Value:
    """The value repeated to a shape that it broadcasts to."""
    return value if value.shape == shape else value.moved(Move.broadcast(value.shape, shape))


def leaves(value: Value) -> list[Leaf]:
    """The stored tensors under a value, each once, first input first."""
    found: dict[int, Leaf] = {}
    stack = [value]
    seen = set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Leaf):
            found[id(part)] = part
        elif isinstance(part, Computed):
            stack += reversed(part.inputs)
    return list(found.values())


def _trace_back(moves: Sequence[Move], shape: tuple[int, ...], index: Index) -> tuple[Any, ...]:
    import numpy as np

    where: tuple[Any, ...] = np.ix_(*(np.arange(size)[cut] for size, cut in zip(shape, index, strict=True))) if shape else ()
    for move in reversed(moves):
        where = move.back(where)
    return where


def _extent(shape: tuple[int, ...], index: Index) -> tuple[int, ...]:
    return tuple(len(range(*cut.indices(size))) for size, cut in zip(shape, index, strict=True))


def _unpack(data: np.ndarray, flat: np.ndarray, bits: int, dtype: np.dtype) -> np.ndarray:
    """Elements of a packed type by their flat positions; the first of a byte lies in its low bits."""
    import numpy as np

    per = 8 // bits
    raw = (data[flat // per] >> ((flat % per) * bits).astype(np.uint8)) & np.uint8((1 << bits) - 1)
    if dtype.name.startswith("int"):
        sign = np.uint8(1 << (bits - 1))
        return np.asarray(((raw ^ sign).astype(np.int8) - np.int8(sign)).astype(dtype))
    return np.asarray(raw.view(dtype) if dtype.name.startswith("float") else raw.astype(dtype))
