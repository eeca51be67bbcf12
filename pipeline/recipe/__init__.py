"""The recipe: its words, and reading it with exact errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.recipe.load import LoadedRecipe, load_recipe
    from pipeline.recipe.problems import RecipeError
    from pipeline.recipe.schema import Recipe

__all__ = ["LoadedRecipe", "Recipe", "RecipeError", "load_recipe"]

_HOMES = {
    "LoadedRecipe": "pipeline.recipe.load",
    "load_recipe": "pipeline.recipe.load",
    "Recipe": "pipeline.recipe.schema",
    "RecipeError": "pipeline.recipe.problems",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
