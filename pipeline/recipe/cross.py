"""Keys that are right alone and wrong together: a row per rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pipeline.errors import InputError
from pipeline.recipe.problems import Problem, RecipeError
from pipeline.recipe.schema import Recipe
from pipeline.recipe.text import Document, Path_
from pipeline.recipe.words import nearest

ARM = re.compile(r"(sparse|twin|dense)(#(?P<build>[2-9]|[1-9][0-9]+))?")
"""An arm as the records name it: its first build has the arm's own name, so that `sparse#1` is none."""
BASELINE = "baseline"
SHARES = ("accuracy", "top5", "binary")
"""Metrics that lie between 0 and 1."""
Found = Iterator[tuple[Path_, str, str | None]]


def _heads(recipe: Recipe) -> Found:
    if list(recipe.data.heads) != recipe.model.heads:
        what = f"data.heads names {', '.join(recipe.data.heads)}, model.heads names {', '.join(recipe.model.heads)}"
        yield ("data", "heads"), what, "name the same heads in the same order"


def _batches(recipe: Recipe) -> Found:
    low, high = recipe.export.batch.min, recipe.export.batch.max
    for number, batch in enumerate(recipe.measure.batches):
        if not low <= batch <= high:
            yield ("measure", "batches", number), f"batch {batch} is outside export.batch ({low} to {high})", "widen export.batch"


def _rule_batches(recipe: Recipe) -> Found:
    measured = recipe.measure.batches or [recipe.export.batch.opt]
    for number, rule in enumerate(recipe.gate.rules):
        if rule.batch is not None and rule.batch not in measured:
            what = f"batch {rule.batch} is not measured (measured: {', '.join(map(str, measured))})"
            yield ("gate", "rules", number, "batch"), what, "add it to measure.batches"


def _rule_heads(recipe: Recipe) -> Found:
    for number, rule in enumerate(recipe.gate.rules):
        if rule.head is not None and rule.head not in recipe.data.heads:
            hint = nearest(rule.head, list(recipe.data.heads)) or f"the heads are {', '.join(recipe.data.heads)}"
            yield ("gate", "rules", number, "head"), f"no head is called {rule.head!r}", hint


def _rule_arms(recipe: Recipe) -> Found:
    for number, rule in enumerate(recipe.gate.rules):
        for key, arm in (("arm", rule.arm), ("over", rule.over)):
            if arm is None or (key == "over" and arm == BASELINE):
                continue
            match = ARM.fullmatch(arm)
            if match is None:
                hint = nearest(arm, ["sparse", "twin", "dense", BASELINE])
                yield (
                    ("gate", "rules", number, key),
                    f"no arm is called {arm!r}: the arms are sparse, twin, dense (sparse#2: its second build; the first is sparse)",
                    hint,
                )
            elif match["build"] and int(match["build"]) > recipe.build.repeats:
                yield ("gate", "rules", number, key), f"{arm} is not built: build.repeats is {recipe.build.repeats}", "raise build.repeats"


def _budgets(recipe: Recipe) -> Found:
    from pipeline.verdict import budget

    for number, rule in enumerate(recipe.gate.rules):
        try:
            budget.parse([rule.model_dump(mode="json")])
        except InputError as error:
            yield ("gate", "rules", number), error.what, error.hint


def _shares(recipe: Recipe) -> Found:
    """A share lies between 0 and 1, so these budgets cannot fail."""
    for number, rule in enumerate(recipe.gate.rules):
        shares = [head for head, metric in recipe.data.heads.items() if metric in SHARES and rule.head in (None, head)]
        if rule.kind != "quality" or not shares:
            continue
        named = f"{recipe.data.heads[shares[0]]} of {shares[0]} is a share"
        if rule.drop_at_most is not None and rule.drop_at_most >= 1:
            what = f"{named}, so a drop_at_most of {rule.drop_at_most:g} cannot fail"
            yield ("gate", "rules", number, "drop_at_most"), what, "0.01 is one point; `head` keeps a rule to one head"
        if isinstance(rule.at_least, float | int) and rule.at_least <= 0:
            what = f"{named}, so an at_least of {rule.at_least:g} cannot fail"
            yield ("gate", "rules", number, "at_least"), what, "0.9 is 90 %; `head` keeps a rule to one head"


def _half_on_cpu(recipe: Recipe) -> Found:
    for name in ("dense", "finetune"):
        if recipe.train.device == "cpu" and getattr(recipe.train, name).precision == "fp16":
            yield ("train", name, "precision"), "fp16 training needs a GPU (its gradients are scaled there)", "bf16 works on both"


ROWS: tuple[Callable[[Recipe], Found], ...] = (_heads, _batches, _rule_batches, _rule_heads, _rule_arms, _budgets, _shares, _half_on_cpu)
"""Each yields path, what is wrong, what to do."""


def check_together(recipe: Recipe, document: Document) -> None:
    """Check what no single key can tell.

    Raises:
        RecipeError: with every problem found.
    """
    problems = [Problem(document.where(path), what, hint) for row in ROWS for path, what, hint in row(recipe)]
    if problems:
        raise RecipeError(problems)
