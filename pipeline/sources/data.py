"""Data by kind: a row per kind says how its splits are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.sources.base import Data, Split
from pipeline.sources.code import call

SPLITS = ("train", "select", "test")
Splits = tuple[Split, Split, Split]


def data_source(section: Mapping[str, Any], base: Path) -> Data:
    """The samples of a recipe's `data` section.

    Args:
        section: The section with defaults filled in.
        base: Folder of the recipe.

    Raises:
        InputError: files that are not there or cannot be read, splits that overlap or lack a head.
    """
    kind = next((kind for kind in KINDS if section.get(kind)), None)
    if kind is None:
        raise InputError(f"give one of {', '.join(KINDS)}", where="data")
    args = dict(section.get("args") or {})
    splits = KINDS[kind](section, base, args)
    heads = dict(section.get("heads") or {"label": "accuracy"})
    for name, split in zip(SPLITS, splits, strict=True):
        _check(name, split, heads)
    return Data(*splits, heads=heads)


def _digits(section: Mapping[str, Any], base: Path, args: dict[str, Any]) -> Splits:
    from pipeline.sources import digits

    try:
        return digits.splits(**args)
    except TypeError as error:
        raise InputError(f"digits: {error}", where="data.args", hint="its args are seed, select, test, scale") from None


def _python(section: Mapping[str, Any], base: Path, args: dict[str, Any]) -> Splits:
    name = str(section["python"])
    found = call(name, base, **args)
    if isinstance(found, Mapping):
        found = tuple(found.get(split) for split in SPLITS)
    if not isinstance(found, tuple | list) or len(found) != len(SPLITS) or any(split is None for split in found):
        raise InputError(
            "the callable must return the splits train, select and test", where=name, hint="a tuple of three, or a dict with these keys"
        )
    return found[0], found[1], found[2]


KINDS: dict[str, Callable[[Mapping[str, Any], Path, dict[str, Any]], Splits]] = {"digits": _digits, "python": _python}
"""Kind -> what reads train, select and test."""


def _check(name: str, split: Split, heads: Mapping[str, str]) -> None:
    import numpy as np

    lacking = [method for method in ("__len__", "batch", "slices") if not callable(getattr(split, method, None))]
    if lacking:
        raise InputError(
            f"the {name} split has no {', '.join(lacking)}", where="data", hint="pipeline.sources.ArraySplit makes one from arrays"
        )
    if len(split) == 0:
        raise InputError(f"the {name} split is empty", where="data")
    _, targets = split.batch(np.arange(1))
    missing = [head for head in heads if head not in targets]
    if missing:
        raise InputError(
            f"the {name} split has no target for the head {missing[0]!r}", where="data.heads", hint=f"it has {', '.join(targets)}"
        )
