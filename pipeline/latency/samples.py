"""Every latency sample with its arm, shape, metric, round and block: exact, compressed, and enough to judge again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from pipeline.errors import InputError
from pipeline.records import npz

if TYPE_CHECKING:
    from numpy.typing import NDArray

_COLUMNS: dict[str, type[np.generic]] = {
    "arm": np.int16,
    "shape": np.int16,
    "metric": np.int16,
    "round": np.int32,
    "block": np.int32,
    "start_ns": np.int64,
    "ms": np.float64,
}


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How one shape was sampled: facts that an interval needs and the samples alone do not show."""

    planned_rounds: int
    """Rounds fixed before sampling began: the horizon over which the intervals hold at every stop."""
    rounds: int
    level: Literal["block", "process"] = "block"
    """Whether the engines stay loaded, or are started anew again and again."""
    group: int = 1
    """Rounds that are one observation: those between two starts of the processes."""
    settled: dict[str, bool] = {}
    """Per arm: did the warm-up become steady?"""
    stopped: str = ""
    """`rounds`, `decided`, or `time limit`."""
    seed: int = 0


class _Head(msgspec.Struct, array_like=True):
    """What a file says beside its columns."""

    arms: tuple[str, ...]
    shapes: tuple[str, ...]
    metrics: tuple[str, ...]
    sampling: dict[str, Sampling]


@dataclass(frozen=True)
class Samples:
    """Samples in the order in which they were taken.

    The columns are arrays [n]; `arm`, `shape` and `metric` are indices into the name tuples, `ms` is float64.
    """

    arms: tuple[str, ...]
    shapes: tuple[str, ...]
    metrics: tuple[str, ...]
    arm: NDArray[np.int16]
    shape: NDArray[np.int16]
    metric: NDArray[np.int16]
    round: NDArray[np.int32]
    block: NDArray[np.int32]
    start_ns: NDArray[np.int64]
    """When the sample's block began, on the machine's monotonic clock: joins what was seen of the device meanwhile."""
    ms: NDArray[np.float64]
    sampling: dict[str, Sampling] = field(default_factory=dict)
    """By shape."""

    def __len__(self) -> int:
        return len(self.ms)

    @property
    def stopped(self) -> str:
        """Why sampling ended, by shape where the reasons differ."""
        reasons = {shape: facts.stopped for shape, facts in self.sampling.items()}
        alike = set(reasons.values())
        return alike.pop() if len(alike) == 1 else ", ".join(f"{shape}: {why}" for shape, why in reasons.items())

    def of(self, arm: str, shape: str, metric: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Rounds [k] and times [k] in ms of one arm at one shape and metric; empty where there are none."""
        try:
            where = (
                (self.arm == self.arms.index(arm)) & (self.shape == self.shapes.index(shape)) & (self.metric == self.metrics.index(metric))
            )
        except ValueError:
            return np.empty(0, np.int32), np.empty(0, np.float64)
        return self.round[where], self.ms[where]

    def present(self) -> list[tuple[str, str, str]]:
        """Every (arm, shape, metric) that has samples, in the order of the names."""
        keys = np.unique(np.stack([self.shape, self.arm, self.metric]), axis=1) if len(self) else np.empty((3, 0), int)
        return [(self.arms[a], self.shapes[s], self.metrics[m]) for s, a, m in keys.T]

    @classmethod
    def concat(cls, parts: Iterable[Samples]) -> Samples:
        """Join samples of several shapes or runs; rounds keep their numbers."""
        every = list(parts)
        names = {
            axis: tuple(dict.fromkeys(name for part in every for name in getattr(part, axis + "s"))) for axis in ("arm", "shape", "metric")
        }
        joined = {}
        for column, dtype in _COLUMNS.items():
            pieces = [getattr(part, column) for part in every]
            if column in names:
                pieces = [_renumbered(piece, getattr(part, column + "s"), names[column]) for piece, part in zip(pieces, every, strict=True)]
            joined[column] = np.concatenate([np.empty(0, dtype), *pieces]).astype(dtype)
        sampling = {shape: facts for part in every for shape, facts in part.sampling.items()}
        return cls(arms=names["arm"], shapes=names["shape"], metrics=names["metric"], sampling=sampling, **joined)

    def save(self, path: Path) -> None:
        """Write a file of columns, see `records.npz`."""
        head = _Head(self.arms, self.shapes, self.metrics, self.sampling)
        npz.write_columns(path, head, {name: getattr(self, name) for name in _COLUMNS})

    @classmethod
    def load(cls, path: Path) -> Samples:
        """Read what `save` wrote.

        Raises:
            InputError: not such a file, too large, damaged, or its columns do not fit together.
        """
        head, found = npz.read_columns(path, _Head, lambda _: _COLUMNS, what="samples")
        return cls(arms=head.arms, shapes=head.shapes, metrics=head.metrics, sampling=head.sampling, **found)._checked(path)

    def _checked(self, path: Path) -> Samples:
        named = all(
            column.size == 0 or (int(column.min()) >= 0 and int(column.max()) < len(names))
            for column, names in ((self.arm, self.arms), (self.shape, self.shapes), (self.metric, self.metrics))
        )
        if not named or not bool((np.isfinite(self.ms) & (self.ms > 0)).all()):
            raise InputError("samples are damaged: names are missing or times are not positive", where=str(path), hint="measure again")
        return self


def _renumbered(column: NDArray[np.int16], old: tuple[str, ...], new: tuple[str, ...]) -> NDArray[np.int16]:
    """Indices into `old` as indices into `new`."""
    return np.array([new.index(name) for name in old] or [0], np.int16)[column]
