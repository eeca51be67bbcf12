"""The recipe's keys as a tree: what may stand where, and what somebody who wrote another word meant."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pipeline.recipe.marks import BesideRecipe
from pipeline.recipe.schema import Recipe

ANY = "*"
"""Stands in a path for a name that the recipe's author chooses, such as an input's."""


def section_of(annotation: Any) -> tuple[type[BaseModel] | None, tuple[str, ...]]:
    """The section that an annotation holds (in a list, a mapping, an Optional), and `ANY` per mapping on the way; None for plain values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ()
    origin = get_origin(annotation)
    if origin in (list, dict, Union, UnionType):
        for arg in get_args(annotation):
            found, names = section_of(arg)
            if found is not None:
                return found, ((ANY, *names) if origin is dict else names)
    return None, ()


@cache
def keys() -> dict[tuple[str, ...], FieldInfo]:
    """Every key of a recipe: path without list positions -> its field, in the schema's order."""
    return dict(_walk(Recipe, ()))


def _walk(section: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, info in section.model_fields.items():
        yield (*path, name), info
        below, names = section_of(info.annotation)
        if below is not None:
            yield from _walk(below, (*path, name, *names))


def is_path(info: FieldInfo) -> bool:
    """Whether a key's value starts at the recipe's folder: it is marked so itself, within an Optional, or within a list."""
    return any(isinstance(mark, BesideRecipe) for mark in (*info.metadata, *_marks(info.annotation)))


def _marks(annotation: Any) -> Iterator[Any]:
    yield from getattr(annotation, "__metadata__", ())
    for arg in get_args(annotation):
        yield from _marks(arg)


def named(path: tuple[str | int, ...]) -> tuple[str, ...]:
    """The path without list positions."""
    return tuple(part for part in path if isinstance(part, str))


def dotted(path: tuple[str | int, ...]) -> str:
    """A path as a person writes it: `gate.rules.0.at_most`."""
    return ".".join(str(part) for part in path) or "the recipe"


def meant(path: tuple[str | int, ...]) -> str:
    """What to write instead of an unknown key: the nearest key there, the same key elsewhere, or the list of keys."""
    *around, key = named(path)
    siblings = [known[-1] for known in keys() if _same(known[:-1], tuple(around))]
    near = get_close_matches(key, siblings, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    elsewhere = [dotted(known) for known in keys() if known[-1] == key]
    if elsewhere:
        return f"it belongs at {', '.join(elsewhere[:4])}"
    return f"its keys are {', '.join(siblings)}"


def _same(known: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(known) == len(path) and all(a in (ANY, b) for a, b in zip(known, path, strict=True))


def nearest(value: object, choices: list[str]) -> str | None:
    """`did you mean ...?` for a value out of a fixed list, or None."""
    near = get_close_matches(str(value), choices, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else None
