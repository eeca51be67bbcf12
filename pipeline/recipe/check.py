"""Values against the schema: what pydantic finds, in the recipe's own words and places."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from pipeline.recipe import words
from pipeline.recipe.problems import Problem, RecipeError
from pipeline.recipe.schema import CALLABLE, ENVIRONMENT, NAME, Recipe
from pipeline.recipe.text import Document, Path_

FORMS = {
    CALLABLE: "has the form `path.py:callable` or `package.module:callable`",
    NAME: "consists of letters, digits, `.`, `_` and `-`, and begins with a letter or digit",
    ENVIRONMENT: "is a name of letters, digits and `_`",
}
"""What a pattern of the schema asks for, in words."""


def _unknown(_: Mapping[str, Any], path: Path_) -> tuple[str, str | None]:
    return f"unknown key {path[-1]!r} in {words.dotted(path[:-1])}", words.meant(path)


def _missing(_: Mapping[str, Any], path: Path_) -> tuple[str, str | None]:
    return f"{words.dotted(path[:-1])} lacks the key {path[-1]!r}", None


def _choice(error: Mapping[str, Any], path: Path_) -> tuple[str, str | None]:
    choices = re.findall(r"'([^']*)'", error["ctx"]["expected"])
    return f"{words.dotted(path)} is one of {', '.join(choices)}, not {_shown(error)}", words.nearest(error["input"], choices)


def _form(error: Mapping[str, Any], path: Path_) -> tuple[str, str | None]:
    form = FORMS.get(error["ctx"]["pattern"], f"matches the pattern {error['ctx']['pattern']}")
    return f"{words.dotted(path)} {form}; {_shown(error)} does not", None


def _said(error: Mapping[str, Any], path: Path_) -> tuple[str, str | None]:
    return f"{words.dotted(path)}: {error['ctx']['error']}", None


def _type(kind: str, hint: str | None = None) -> Callable[[Mapping[str, Any], Path_], tuple[str, str | None]]:
    return lambda error, path: (f"{words.dotted(path)} must be {kind}, not {_shown(error)}", hint)


def _other(error: Mapping[str, Any], path: Path_) -> tuple[str, str | None]:
    text = str(error["msg"]).replace("Input should", "should")
    return f"{words.dotted(path)}: {text}; it is {_shown(error)}", None


SAYINGS: dict[str, Callable[[Mapping[str, Any], Path_], tuple[str, str | None]]] = {
    "extra_forbidden": _unknown,
    "missing": _missing,
    "literal_error": _choice,
    "string_pattern_mismatch": _form,
    "value_error": _said,
    "string_type": _type("text", "put it in quotes"),
    "int_type": _type("a whole number"),
    "float_type": _type("a number"),
    "bool_type": _type("true or false"),
    "list_type": _type("a list", "write `[a, b]`, or one `- item` a line"),
    "dict_type": _type("a mapping of keys to values"),
    "model_type": _type("a section with keys of its own"),
}
"""pydantic's error type -> what is wrong, and the next step."""


def _shown(error: Mapping[str, Any]) -> str:
    text = repr(error["input"]) if error["input"] is not None else "null"
    return text if len(text) <= 60 else text[:57] + "..."


def check(document: Document) -> Recipe:
    """Check a document's values against the recipe's schema.

    Raises:
        RecipeError: with every problem found.
    """
    if not isinstance(document.values, dict):
        raise RecipeError(
            [Problem(document.where(()), "a recipe is a mapping of keys to values", "`sparsegate schema recipe` lists its keys")]
        )
    try:
        return Recipe.model_validate(document.values)
    except ValidationError as error:
        found: dict[tuple[str, str], Problem] = {}
        for item in error.errors(include_url=False):
            problem = _problem(item, document)
            found.setdefault((problem.where, problem.what), problem)
        raise RecipeError(sorted(found.values(), key=lambda problem: _order(problem.where))) from None


def _problem(error: Mapping[str, Any], document: Document) -> Problem:
    path = _known(error["loc"], document, keep_last=error["type"] in ("missing", "extra_forbidden"))
    what, hint = SAYINGS.get(error["type"], _other)(error, path)
    at_key = error["type"] in ("extra_forbidden", "value_error") or error["loc"][-1:] == ("[key]",)
    return Problem(document.where(path, key=at_key), what, hint)


def _known(loc: Path_, document: Document, keep_last: bool) -> Path_:
    """The part of pydantic's location that is in the document: behind it stand names of union members."""
    if keep_last or not loc:
        return loc
    path = loc
    while path and path not in document.spots:
        path = path[:-1]
    return path or loc[:1]


def _order(where: str) -> tuple[str, int, int]:
    label, line, column = [*where.rsplit(":", 2), "", ""][:3]
    return (label, int(line), int(column)) if line.isdigit() and column.isdigit() else (where, 0, 0)
