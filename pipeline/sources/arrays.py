"""A split whose samples are arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from pipeline.sources.base import Split

    Arrays = dict[str, np.ndarray]


class ArraySplit:
    """Samples held as arrays.

    Args:
        inputs: By input name [n, ...]; given to the model as float32 (integers of ids stay integers).
        targets: By head [n] (class numbers, int64) or [n, ...] (values, float32).
        slices: Further axes: axis -> label per sample [n]. Heads with class numbers are axes already:
            `class` with one head, `<head>.class` with several.
        name: What errors call the split.

    Raises:
        InputError: no samples, or arrays of different lengths.
    """

    def __init__(
        self,
        inputs: Mapping[str, np.ndarray],
        targets: Mapping[str, np.ndarray],
        slices: Mapping[str, np.ndarray] | None = None,
        *,
        name: str = "split",
    ) -> None:
        import numpy as np

        self._inputs = {key: np.asarray(value) for key, value in inputs.items()}
        self._targets = {key: _as_target(np.asarray(value)) for key, value in targets.items()}
        single = [key for key, value in [*self._inputs.items(), *self._targets.items()] if value.ndim == 0 or value.dtype == object]
        if single:
            raise InputError(f"{single[0]} of the {name} split is no array of samples", hint="give arrays whose first axis is the sample")
        self._slices = {**class_axes(self._targets), **(slices or {})}
        lengths = {key: len(value) for key, value in [*self._inputs.items(), *self._targets.items(), *self._slices.items()]}
        if not self._inputs or not self._targets or len(set(lengths.values())) != 1 or 0 in lengths.values():
            raise InputError(f"the {name} split needs inputs and targets with the same number of samples, at least one; it has {lengths}")
        self._length = next(iter(lengths.values()))

    def __len__(self) -> int:
        return self._length

    def batch(self, index: np.ndarray) -> tuple[Arrays, Arrays]:
        """Inputs and targets of the given sample numbers."""
        inputs = {name: _as_input(values[index]) for name, values in self._inputs.items()}
        return inputs, {head: values[index] for head, values in self._targets.items()}

    def slices(self) -> Mapping[str, np.ndarray]:
        """One label per sample and axis."""
        return self._slices


class Subset:
    """Some samples of a split, in the given order.

    Args:
        split: The whole.
        index: Sample numbers of it [n].
    """

    def __init__(self, split: Split, index: np.ndarray) -> None:
        self._split, self._index = split, index

    def __len__(self) -> int:
        return len(self._index)

    def batch(self, index: np.ndarray) -> tuple[Arrays, Arrays]:
        """Inputs and targets of the given numbers within the subset."""
        return self._split.batch(self._index[index])

    def slices(self) -> Mapping[str, np.ndarray]:
        """One label per sample of the subset and axis."""
        return {axis: labels[self._index] for axis, labels in self._split.slices().items()}


def _as_input(values: np.ndarray) -> np.ndarray:
    import numpy as np

    return values if values.dtype.kind in "iu" and values.dtype.itemsize == 8 else np.ascontiguousarray(values, dtype=np.float32)


def _as_target(values: np.ndarray) -> np.ndarray:
    """Class numbers and flags as int64, values as float32."""
    import numpy as np

    return values.astype(np.int64) if values.dtype.kind in "iub" else values.astype(np.float32) if values.dtype.kind == "f" else values


def class_axes(targets: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The slicing axes that class numbers give by themselves: `class` for one head, `<head>.class` for several."""
    classes = {head: values for head, values in targets.items() if values.ndim == 1 and values.dtype.kind in "iu"}
    return {"class" if len(targets) == 1 else f"{head}.class": values.astype(str) for head, values in classes.items()}
