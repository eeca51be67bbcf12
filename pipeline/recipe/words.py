"""The recipe's keys as a tree: what may stand where, and what somebody who wrote another word meant."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pipeline.recipe.schema import Recipe


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The section that an annotation holds: itself, in a list, in an Optional; None for plain values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType):
        return next((found for arg in get_args(annotation) if (found := section_of(arg))), None)
    return None


@cache
def keys() -> dict[tuple[str, ...], FieldInfo]:
    """Every key of a recipe: path without list positions -> its field, in the schema's order."""
    return dict(_walk(Recipe, ()))


def _walk(section: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, info in section.model_fields.items():
        yield (*path, name), info
        below = section_of(info.annotation)
        if below is not None:
            yield from _walk(below, (*path, name))


def named(path: tuple[str | int, ...]) -> tuple[str, ...]:
    """The path without list positions."""
    return tuple(part for part in path if isinstance(part, str))


def dotted(path: tuple[str | int, ...]) -> str:
    """A path as a person writes it: `gate.rules.0.at_most`."""
    return ".".join(str(part) for part in path) or "the recipe"


def meant(path: tuple[str | int, ...]) -> str:
    """What to write instead of an unknown key: the nearest key there, the same key elsewhere, or the list of keys."""
    *around, key = named(path)
    siblings = [known[-1] for known in keys() if known[:-1] == tuple(around)]
    near = get_close_matches(key, siblings, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    elsewhere = [dotted(known) for known in keys() if known[-1] == key]
    if elsewhere:
        return f"it belongs at {', '.join(elsewhere[:4])}"
    return f"its keys are {', '.join(siblings)}"


def nearest(value: object, choices: list[str]) -> str | None:
    """`did you mean ...?` for a value out of a fixed list, or None."""
    near = get_close_matches(str(value), choices, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else None
