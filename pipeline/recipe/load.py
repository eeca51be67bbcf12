"""Read a recipe: YAML, `extends:`, declared environment variables, `--set`, the schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.recipe import settings
from pipeline.recipe.check import check
from pipeline.recipe.cross import check_together
from pipeline.recipe.environment import fill
from pipeline.recipe.inherit import inherited
from pipeline.recipe.problems import Problem, RecipeError
from pipeline.recipe.schema import Recipe
from pipeline.recipe.text import parse, read_text

READING_ONLY = ("extends", "environment", "sweep")
"""Keys that say how to read the recipe, or how often: their effect is in the other sections."""


@dataclass(frozen=True)
class LoadedRecipe:
    """A checked recipe and where it came from."""

    recipe: Recipe
    path: Path
    text: str
    """The file's own text, as it stands on disk."""
    digest: str
    """sha256 of the effective content: after `extends`, environment, `--set` and defaults."""
    sections: dict[str, Any]
    """The recipe as plain JSON values with defaults filled in: what stages read, and what keys are made from."""
    base: Path
    """Folder of the recipe: paths in it start here."""
    overrides: tuple[str, ...] = ()
    """`--set`, in the order given."""


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> LoadedRecipe:
    """Read and check a recipe.

    Args:
        path: The YAML file.
        overrides: `a.b=c` texts that replace single values, as `--set` gives them.

    Raises:
        InputError: the file cannot be read, or is no YAML.
        RecipeError: (an InputError) with every problem found, each with file:line:column or its override.
    """
    path = Path(path)
    text = read_text(path)
    document = parse(text, str(path))
    if not isinstance(document.values, dict):
        raise RecipeError(
            [Problem(document.where(()), "a recipe is a mapping of keys to values", "`sparsegate schema recipe` lists its keys")]
        )
    document = inherited(document, path)
    settings.apply(document, overrides)
    fill(document)
    recipe = check(document)
    check_together(recipe, document)
    content = {key: value for key, value in recipe.model_dump(mode="json").items() if key not in READING_ONLY}
    return LoadedRecipe(
        recipe=recipe,
        path=path,
        text=text,
        digest=hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest(),
        sections=content,
        base=path.resolve().parent,
        overrides=tuple(overrides),
    )
