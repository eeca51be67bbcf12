from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.recipe import RecipeError, load_recipe

MINIMAL = "name: small\nmodel: {python: 'm.py:build'}\ndata: {digits: true}\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a recipe and return its path."""

    def writer(text: str = MINIMAL, name: str = "recipe.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return writer


@pytest.fixture
def problems(write: Callable[..., Path]) -> Callable[..., list[str]]:
    """What is wrong with a recipe's text, with places relative to its folder."""

    def finder(text: str, *overrides: str) -> list[str]:
        path = write(text)
        with pytest.raises(RecipeError) as caught:
            load_recipe(path, overrides)
        return [str(problem).replace(f"{path}:", "") for problem in caught.value.problems]

    return finder
