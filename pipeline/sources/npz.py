"""Arrays in one .npz file: `train_x`, `train_label`, `select_x`, ..."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.sources.arrays import ArraySplit

if TYPE_CHECKING:
    import numpy as np

SPLITS = ("train", "select", "test")


def splits(section: Mapping[str, Any], base: Path) -> tuple[ArraySplit, ...]:
    """Train, select and test of a .npz file: `<split>_<name>`, where a name is a head's or else an input's.

    Args:
        section: The recipe's data section.
        base: Folder of the recipe.

    Raises:
        InputError: the file cannot be read, holds Python objects, or lacks an array.
    """
    from pipeline.records.npz import arrays

    path = base / section["npz"]
    heads = tuple(section.get("heads") or ("label",))
    if not path.exists():
        raise InputError(f"there is no file {path}", where="data.npz", hint="paths in a recipe start at the recipe's folder")
    found = arrays(path, hint="write it with numpy.savez; no object arrays")
    return tuple(_split(name, found, heads, path) for name in SPLITS)


def _split(split: str, arrays: Mapping[str, np.ndarray], heads: tuple[str, ...], path: Path) -> ArraySplit:
    own = {name.removeprefix(f"{split}_"): array for name, array in arrays.items() if name.startswith(f"{split}_")}
    missing = [head for head in heads if head not in own]
    if missing or len(own) == len(heads):
        lacking = f"{split}_{missing[0]}" if missing else f"an input of the {split} split, such as {split}_x"
        raise InputError(f"the file lacks {lacking}", where=str(path), hint=f"it holds {', '.join(arrays) or 'nothing'}")
    return ArraySplit({name: array for name, array in own.items() if name not in heads}, {head: own[head] for head in heads}, name=split)
