"""Data by kind: a row per kind says how its splits are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from pipeline.errors import InputError
from pipeline.sources.apart import apart
from pipeline.sources.base import Data, Split
from pipeline.sources.code import call
from pipeline.sources.slicing import with_slices

SPLITS = ("train", "select", "test")
Splits = tuple[Split, Split, Split]


def data_source(section: Mapping[str, Any], base: Path, model: Mapping[str, Any] | None = None) -> Data:
    """The samples of a recipe's `data` section.

    Args:
        section: The section with defaults filled in.
        base: Folder of the recipe.
        model: The recipe's `model` section: timm and torchvision models say how their images are prepared.

    Raises:
        InputError: files that are not there or cannot be read, splits that are one and the same or lack a head.
    """
    kind = next((kind for kind in KINDS if section.get(kind)), None)
    if kind is None:
        raise InputError(f"give one of {', '.join(KINDS)}", where="data")
    train, select, test = KINDS[kind](section, base, dict(section.get("args") or {}), model)
    heads = dict(section.get("heads") or {"label": "accuracy"})
    for name, split in zip(SPLITS, (train, select, test), strict=True):
        _check(name, split, heads, list((model or {}).get("inputs") or ()))
    apart({"train": train, "select": select, "test": test})
    further = section.get("slices") or {}
    return Data(train, with_slices(select, "select", further, base), with_slices(test, "test", further, base), heads=heads)


def _digits(section: Mapping[str, Any], base: Path, args: dict[str, Any], model: Mapping[str, Any] | None) -> Splits:
    from pipeline.sources import digits

    try:
        return digits.splits(**args)
    except TypeError as error:
        raise InputError(f"digits: {error}", where="data.args", hint="its args are seed, select, test, scale") from None


def _python(section: Mapping[str, Any], base: Path, args: dict[str, Any], model: Mapping[str, Any] | None) -> Splits:
    name = str(section["python"])
    found = call(name, base, **args)
    if isinstance(found, Mapping):
        found = tuple(found.get(split) for split in SPLITS)
    if not isinstance(found, tuple | list) or len(found) != len(SPLITS) or any(split is None for split in found):
        raise InputError(
            "the callable must return the splits train, select and test", where=name, hint="a tuple of three, or a dict with these keys"
        )
    train, select, test = (_paired(split, which, section, model) for which, split in zip(SPLITS, found, strict=True))
    return train, select, test


def _paired(split: Any, which: str, section: Mapping[str, Any], model: Mapping[str, Any] | None) -> Split:
    """The split itself (`_check` refuses what is none), or one made of a pair of arrays for the first input and the first head."""
    if not isinstance(split, tuple | list) or len(split) != 2:
        return cast(Split, split)
    from pipeline.sources.arrays import ArraySplit

    name = next(iter((model or {}).get("inputs") or ()), "x")
    head = next(iter(section.get("heads") or ()), "label")
    return ArraySplit({name: split[0]}, {head: split[1]}, name=which)


def _imagefolder(section: Mapping[str, Any], base: Path, args: dict[str, Any], model: Mapping[str, Any] | None) -> Splits:
    from pipeline.sources import imagefolder

    train, select, test = imagefolder.splits(section, base, args, model)
    return train, select, test


def _npz(section: Mapping[str, Any], base: Path, args: dict[str, Any], model: Mapping[str, Any] | None) -> Splits:
    from pipeline.sources import npz

    if args:
        raise InputError("npz takes no arguments", where="data.args")
    train, select, test = npz.splits(section, base)
    return train, select, test


Reader = Callable[[Mapping[str, Any], Path, dict[str, Any], "Mapping[str, Any] | None"], Splits]
KINDS: dict[str, Reader] = {"digits": _digits, "python": _python, "imagefolder": _imagefolder, "npz": _npz}
"""Kind -> what reads train, select and test from the section, the recipe's folder, `args` and the model section."""


def _check(name: str, split: Split, heads: Mapping[str, str], inputs: list[str]) -> None:
    import numpy as np

    lacking = [method for method in ("__len__", "batch", "slices") if not callable(getattr(split, method, None))]
    if lacking:
        raise InputError(
            f"the {name} split has no {', '.join(lacking)}", where="data", hint="return a pair of arrays, or pipeline.sources.ArraySplit"
        )
    if len(split) == 0:
        raise InputError(f"the {name} split is empty", where="data")
    found, targets = split.batch(np.arange(1))
    if inputs and list(found) != inputs:
        raise InputError(
            f"the {name} split gives the inputs {', '.join(found)}, the model takes {', '.join(inputs)}",
            where="model.inputs",
            hint=f"write `inputs: [{', '.join(found)}]`, or give the inputs in that order",
        )
    missing = [head for head in heads if head not in targets]
    if missing:
        raise InputError(
            f"the {name} split has no target for the head {missing[0]!r}", where="data.heads", hint=f"it has {', '.join(targets)}"
        )
