"""More axes to judge samples by: columns of a CSV file, or a callable."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.sources.base import Split
from pipeline.sources.code import call

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray]

KEY_COLUMNS = ("split", "sample")
Table = dict[tuple[str, str], dict[str, str]]


class Sliced:
    """A split with further axes.

    Args:
        split: The samples.
        axes: Axis -> one label per sample [n].
    """

    def __init__(self, split: Split, axes: Mapping[str, np.ndarray]) -> None:
        self._split, self._axes = split, dict(axes)
        if callable(getattr(split, "augmented", None)):
            self.augmented = split.augmented  # type: ignore[attr-defined]  # optional in the protocol

    def __len__(self) -> int:
        return len(self._split)

    def batch(self, index: np.ndarray) -> tuple[Arrays, Arrays]:
        """As the split's own."""
        return self._split.batch(index)

    def slices(self) -> Mapping[str, np.ndarray]:
        """The split's own axes and the further ones."""
        return {**self._split.slices(), **self._axes}


def with_slices(split: Split, name: str, section: Mapping[str, Any], base: Path) -> Split:
    """The split with the axes that a recipe's `data.slices` section adds.

    Args:
        split: The samples.
        name: `select` or `test`.
        section: `csv`, `columns`, `python`.
        base: Folder of the recipe.

    Raises:
        InputError: a sample without a row, an unknown column, labels of another number than samples.
    """
    axes: dict[str, np.ndarray] = {}
    if section.get("csv"):
        axes |= _from_csv(split, name, base / section["csv"], list(section.get("columns") or []))
    if section.get("python"):
        axes |= _from_callable(split, name, str(section["python"]), base)
    return Sliced(split, axes) if axes else split


def _from_csv(split: Split, name: str, path: Path, columns: list[str]) -> dict[str, np.ndarray]:
    import numpy as np

    table, known = _table(path)
    unknown = [column for column in columns if column not in known]
    if unknown:
        raise InputError(f"the file has no column {unknown[0]!r}", where=f"{path}:1", hint=f"it has {', '.join(known)}")
    samples = list(getattr(split, "names", None) or map(str, range(len(split))))
    home = str(getattr(split, "home", name))
    rows = [table.get((home, sample)) or table.get((name, sample)) for sample in samples]
    for sample, row in zip(samples, rows, strict=True):
        if row is None:
            raise InputError(
                f"no row for the sample {sample} of the {name} split", where=str(path), hint=f"write split={home}, sample={sample}"
            )
    return {column: np.asarray([row[column] for row in rows if row is not None]) for column in columns or known}


def _table(path: Path) -> tuple[Table, list[str]]:
    """Rows by split and sample, and the columns that are axes."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            missing = [column for column in KEY_COLUMNS if column not in header]
            if missing or len(header) < 3 or len(set(header)) != len(header):
                raise InputError("the first line must name `split`, `sample` and at least one more column, each once", where=f"{path}:1")
            table: Table = {}
            for row in reader:
                where = f"{path}:{reader.line_num}"
                if len(row) != len(header):
                    raise InputError(f"{len(row)} values in a table of {len(header)} columns", where=where)
                named = dict(zip(header, row, strict=True))
                key = (named["split"], named["sample"])
                if key in table:
                    raise InputError(f"a second row for the sample {key[1]} of {key[0]}", where=where)
                table[key] = named
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read the slices ({error})", where=str(path)) from None
    return table, [column for column in header if column not in KEY_COLUMNS]


def _from_callable(split: Split, name: str, target: str, base: Path) -> dict[str, np.ndarray]:
    import numpy as np

    found = call(target, base, name, split)
    if not isinstance(found, Mapping) or not found:
        raise InputError("the callable must return a mapping of axis to one label per sample", where=target)
    axes = {str(axis): np.asarray(labels).astype(str) for axis, labels in found.items()}
    for axis, labels in axes.items():
        if labels.shape != (len(split),):
            raise InputError(f"the axis {axis!r} of the {name} split has {labels.shape} labels for {len(split)} samples", where=target)
    return axes
