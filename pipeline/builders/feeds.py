"""Inputs of engines: checked before an engine sees them (names, types, shapes), and drawn where nobody gave any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import InputError

if TYPE_CHECKING:
    import numpy as np


def checked_feeds(feeds: Mapping[str, np.ndarray], inputs: Mapping[str, tuple[str, Sequence[int | str | None]]]) -> dict[str, np.ndarray]:
    """The feeds in the engine's order, contiguous, in the engine's types.

    A floating-point feed is cast to another floating-point type (data is kept in float32, engines read float16 too);
    no other cast is made.

    Args:
        feeds: Array by input name.
        inputs: numpy type and shape by input name; an axis that is no whole number from 0 is dynamic.

    Raises:
        InputError: a name that is missing or not known, a rank, an extent or a type that does not fit.
    """
    if set(feeds) != set(inputs):
        raise InputError(f"inputs are {sorted(feeds)}, the engine reads {sorted(inputs)}", where="engine inputs")
    return {name: _fitted(name, feeds[name], *inputs[name]) for name in inputs}


def _fitted(name: str, array: np.ndarray, dtype: str, shape: Sequence[int | str | None]) -> np.ndarray:
    import numpy as np

    if len(array.shape) != len(shape) or any(
        isinstance(want, int) and want >= 0 and want != have for want, have in zip(shape, array.shape, strict=True)
    ):
        raise InputError(f"shape {list(array.shape)} does not fit {list(shape)}", where=f"input {name}")
    if str(array.dtype) != dtype:
        if not (np.issubdtype(array.dtype, np.floating) and dtype.startswith("float")):
            raise InputError(f"type {array.dtype} does not fit {dtype}", where=f"input {name}")
        array = array.astype(dtype)
    return np.ascontiguousarray(array)


def random_feeds(model: Path, batch: int, seed: int) -> dict[str, np.ndarray]:
    """Normal values for floats, 0 and 1 for whole numbers; the first axis is the batch where it is dynamic.

    Args:
        model: An ONNX file.
        batch: Samples.
        seed: Of the values.

    Raises:
        InputError: another axis is dynamic, or the model's batch is fixed to another number.
    """
    import numpy as np

    from pipeline.builders.model_io import input_types, inputs_of

    rng = np.random.default_rng(seed)
    types, feeds = input_types(model), {}
    for name, shape in inputs_of(model).items():
        extents = [batch if at == 0 and not isinstance(extent, int) else extent for at, extent in enumerate(shape)]
        known = [extent for extent in extents if isinstance(extent, int)]
        if len(known) < len(shape):
            raise InputError(f"input {name} has axes of unknown size: {shape}", where=str(model), hint="give arrays with --inputs FILE.npz")
        if known and known[0] not in (batch, 1):
            raise InputError(f"input {name} has batch {known[0]}, not {batch}", where=str(model), hint=f"--batch {known[0]}")
        dtype = np.dtype(types[name]) if types[name] in np.sctypeDict else np.dtype("float32")
        floating = np.issubdtype(dtype, np.floating)
        feeds[name] = (rng.standard_normal(known) if floating else rng.integers(0, 2, known)).astype(dtype)
    return feeds
