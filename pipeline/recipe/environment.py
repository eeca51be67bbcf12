"""`${NAME}` in values: only for variables that the recipe declares under `environment:`."""

from __future__ import annotations

import os
import re
from typing import Any

from pipeline.recipe.problems import Problem, RecipeError
from pipeline.recipe.text import Document, Path_, parse

REFERENCE = re.compile(r"\$(?P<escaped>\$)?\{(?P<name>[^}]*)\}")
UNTOUCHED = ("environment", "description", "extends")


def fill(document: Document) -> None:
    """Replace every `${NAME}` by the variable's value or declared default; `$${NAME}` stays as `${NAME}`.

    Raises:
        RecipeError: with every variable that is not declared, or neither set nor given a default.
    """
    declared = document.values.get("environment")
    known = declared if isinstance(declared, dict) else {}
    problems: list[Problem] = []
    for key, value in document.values.items():
        if key not in UNTOUCHED:
            document.values[key] = _filled(value, (key,), document, known, problems)
    if problems:
        raise RecipeError(problems)


def _filled(value: Any, path: Path_, document: Document, known: dict[str, Any], problems: list[Problem]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, (*path, key), document, known, problems) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, (*path, index), document, known, problems) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value

    def one(match: re.Match[str]) -> str:
        name = match["name"]
        if match["escaped"]:
            return match[0][1:]
        if name not in known:
            problems.append(Problem(document.where(path), f"${{{name}}} is not declared", f"declare it: `environment: {{{name}: null}}`"))
            return match[0]
        found = os.environ.get(name, known[name])
        if found is None:
            problems.append(
                Problem(document.where(path), f"the environment variable {name} is not set", f"export {name}=..., or give it a default")
            )
            return match[0]
        return str(found)

    whole = REFERENCE.fullmatch(value)
    text = REFERENCE.sub(one, value)
    return parse(text, document.where(path), marked=False).values if whole and not whole["escaped"] and text != value else text
