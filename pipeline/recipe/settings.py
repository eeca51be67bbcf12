"""`--set a.b=c`: one value of the recipe replaced from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.recipe.problems import Problem, RecipeError
from pipeline.recipe.text import Document, Path_, parse
from pipeline.recipe.words import dotted


def apply(document: Document, overrides: Sequence[str]) -> None:
    """Put every override into the document, in order; errors name the override.

    Args:
        document: Changed in place.
        overrides: `path=value` texts; path is keys and list positions joined by dots, value is YAML (`3`, `[1, 8]`, `null`).

    Raises:
        RecipeError: with every override that cannot be applied.
    """
    problems: list[Problem] = []
    for override in overrides:
        try:
            _apply_one(document, override)
        except RecipeError as error:
            problems.extend(error.problems)
    if problems:
        raise RecipeError(problems)


def _apply_one(document: Document, override: str) -> None:
    label = f"--set {override}"
    name, sign, text = override.partition("=")
    parts = name.strip().split(".")
    if not sign or not all(parts):
        raise RecipeError([Problem(label, "not of the form key=value", "such as --set train.dense.epochs=3")])
    value = parse(text, label, marked=False)
    holder: Any = document.values
    path: Path_ = ()
    for part in parts[:-1]:
        holder, path = _below(holder, part, path, label)
    step = _step(holder, parts[-1], path, label)
    holder[step] = value.values
    _mark(document, (*path, step), value, label)


def _below(holder: Any, part: str, path: Path_, label: str) -> tuple[Any, Path_]:
    step = _step(holder, part, path, label)
    if isinstance(holder, dict) and holder.get(part) is None:
        holder[part] = {}
    return holder[step], (*path, step)


def _step(holder: Any, part: str, path: Path_, label: str) -> str | int:
    if isinstance(holder, dict):
        return part
    if isinstance(holder, list):
        if part.isdigit() and int(part) < len(holder):
            return int(part)
        what = f"{dotted(path)} is a list of {len(holder)}: {part!r} is no position in it (the first is 0)"
        raise RecipeError([Problem(label, what)])
    raise RecipeError([Problem(label, f"{dotted(path)} is {holder!r}, which has no keys below it")])


def _mark(document: Document, path: Path_, value: Document, label: str) -> None:
    for table in (document.keys, document.spots):
        for old in [known for known in table if known[: len(path)] == path]:
            del table[old]
    for end in range(1, len(path) + 1):
        document.keys.setdefault(path[:end], label)
        document.spots.setdefault(path[:end], label)
    for below in value.spots:
        document.spots[(*path, *below)] = label
    for below in value.keys:
        document.keys[(*path, *below)] = label
