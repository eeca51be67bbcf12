"""Everything that is wrong with a recipe, said at once: each problem with its place and the next step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.errors import InputError

SHOWN = 20


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    where: str
    """`file:line:column`, or the `--set` that says it."""
    what: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f" ({self.hint})" if self.hint else "")


class RecipeError(InputError):
    """A recipe that cannot be used; `problems` has all of them, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        first, *others = self.problems
        super().__init__(first.what, where=first.where, hint=first.hint)
        self._others = others

    def __str__(self) -> str:
        if not self._others:
            return super().__str__()
        lines = [f"{len(self.problems)} problems in the recipe:", *(f"  {problem}" for problem in self.problems[:SHOWN])]
        if len(self.problems) > SHOWN:
            lines.append(f"  and {len(self.problems) - SHOWN} more")
        return "\n".join(lines)
