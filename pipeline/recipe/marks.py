"""What a recipe's key means beyond its type: where its paths start, and which keys exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True)
class BesideRecipe:
    """Marks a path, or `path.py:callable`, that is relative to the folder of the recipe that says it."""


class OneOf:
    """Keys of which exactly one is given (in the JSON Schema at most one: a recipe that extends another may give none).

    Args:
        keys: Names of the fields.
    """

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    @property
    def schema(self) -> dict[str, Any]:
        """The rule in JSON Schema."""
        return {"not": {"anyOf": [{"required": list(pair)} for pair in combinations(self.keys, 2)]}}

    def check(self, section: Any) -> None:
        """Raise ValueError unless exactly one of the keys is set (neither null nor false)."""
        given = [key for key in self.keys if getattr(section, key) not in (None, False)]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(self.keys)}" + (f", not {' and '.join(given)}" if given else ""))
