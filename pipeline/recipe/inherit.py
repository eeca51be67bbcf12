"""`extends:`: a recipe that says only what differs from another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.recipe import words
from pipeline.recipe.problems import Problem, RecipeError
from pipeline.recipe.text import Document, Path_, parse, read_text

MAX_CHAIN = 8
KINDS = {"model": ("python", "timm", "torchvision", "onnx"), "data": ("digits", "python", "imagefolder", "npz")}
"""Sections that are one of several kinds: another kind replaces the section whole."""


def inherited(document: Document, path: Path) -> Document:
    """The document laid over the recipe that it extends, and so on; the document itself when it extends none.

    Lists and plain values replace those of the base, mappings are merged key by key. Paths of the base still start at the base's folder.

    Raises:
        RecipeError: a base that cannot be read, that leads back to itself, or more than `MAX_CHAIN` of them.
    """
    seen = [path.resolve()]
    top = path.resolve().parent
    while (base := document.values.get("extends")) is not None:
        place = document.where(("extends",))
        if not isinstance(base, str) or not base:
            raise RecipeError([Problem(place, "extends must be the path of a recipe")])
        file = (seen[-1].parent / base).resolve()
        if file in seen or len(seen) > MAX_CHAIN:
            raise RecipeError([Problem(place, f"extends leads back to a recipe, or through more than {MAX_CHAIN} of them")])
        try:
            below = parse(read_text(file), os.path.relpath(file))
        except RecipeError:
            raise
        except InputError as error:
            raise RecipeError([Problem(place, f"cannot extend {base}: {error.what}", error.hint)]) from None
        if not isinstance(below.values, dict):
            raise RecipeError([Problem(below.where(()), "a recipe is a mapping of keys to values")])
        _move(below.values, file.parent, top)
        seen.append(file)
        document = _laid_over(document, below)
    return document


def _laid_over(upper: Document, lower: Document) -> Document:
    """Upper's values over lower's; the place of every value is where it was said."""
    upper.values.pop("extends", None)
    merged = Document({}, dict(lower.keys), dict(lower.spots))
    merged.values = _merge(lower.values, upper.values, (), merged)
    merged.keys.update(upper.keys)
    merged.spots.update(upper.spots)
    return merged


def _merge(lower: Any, upper: Any, path: Path_, into: Document) -> Any:
    if not (isinstance(lower, dict) and isinstance(upper, dict)) or _another_kind(lower, upper, path):
        for table in (into.keys, into.spots):
            for old in [known for known in table if known[: len(path)] == path and path]:
                del table[old]
        return upper
    merged = dict(lower)
    for key, value in upper.items():
        merged[key] = _merge(lower[key], value, (*path, key), into) if key in lower else value
    return merged


def _another_kind(lower: dict[str, Any], upper: dict[str, Any], path: Path_) -> bool:
    kinds = KINDS.get(str(path[0]), ()) if len(path) == 1 else ()
    said = {kind for kind in kinds if upper.get(kind)}
    return bool(said) and said != {kind for kind in kinds if lower.get(kind)}


def _move(values: dict[str, Any], folder: Path, top: Path) -> None:
    """Rewrite the base's relative paths, so that they start at the folder of the recipe that extends it."""
    if folder == top:
        return
    for path, info in words.keys().items():
        if words.is_path(info) and path != ("extends",):
            _rewrite(values, path, folder, top)


def _rewrite(values: Any, path: tuple[str, ...], folder: Path, top: Path) -> None:
    for key in path[:-1]:
        values = values.get(key) if isinstance(values, dict) else None
    if not isinstance(values, dict):
        return
    value = values.get(path[-1])
    if isinstance(value, str):
        values[path[-1]] = _moved(value, folder, top)
    elif isinstance(value, list):
        values[path[-1]] = [_moved(item, folder, top) if isinstance(item, str) else item for item in value]


def _moved(value: str, folder: Path, top: Path) -> str:
    file, colon, name = value.partition(":")
    if file.startswith(("/", "$")) or (colon and not file.endswith(".py")):
        return value
    return os.path.relpath(folder / file, top) + colon + name
