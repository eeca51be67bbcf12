"""A budget as plain data: what a recipe's `gate.rules` or a program gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from pipeline.errors import InputError

BASELINE = "baseline"
"""As a rule's `over`: the stored baseline."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One budget; the recipe's schema describes the fields."""

    kind: Literal["latency", "quality", "rungs", "stability", "size", "energy"]
    arm: str = "sparse"
    over: str | None = None
    metric: Literal["gpu_compute", "host_latency", "enqueue", "request"] | None = None
    batch: int | None = None
    profile: int | None = None
    quantile: Literal["p50", "p90", "p99", "p99.9", "mean"] = "p50"
    claim: Literal["engine", "recipe"] | None = None
    at_most: float | None = None
    head: str | None = None
    slice: str | None = None
    drop_at_most: float | None = None
    at_least: float | Literal["all"] | None = None
    rung: Literal["masked", "frozen", "exported", "eligible", "timed", "selected"] | None = None
    layers: list[str] = []
    builds: int | None = None
    size: str | None = None


NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "latency": (("at_most",),),
    "quality": (("drop_at_most", "at_least"),),
    "rungs": (("rung",), ("at_least", "layers")),
    "stability": (),
    "size": (("at_most",), ("size",)),
    "energy": (("at_most",),),
}
"""Per kind: of each group at least one field must be given."""


def parse(rules: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """Check and convert budgets.

    Raises:
        InputError: an unknown key, a value of the wrong type, or a kind without its budget; names the rule's number.
    """
    found = []
    for number, mapping in enumerate(rules, 1):
        where = f"gate rule {number}"
        try:
            rule = msgspec.convert({key: value for key, value in mapping.items() if value is not None}, Rule)
        except msgspec.ValidationError as error:
            raise InputError(f"not a usable rule: {error}", where=where, hint="sparsegate schema recipe") from None
        for group in NEEDS[rule.kind]:
            if not any(getattr(rule, field) not in (None, []) for field in group):
                raise InputError(f"a {rule.kind} rule needs {' or '.join(group)}", where=where, hint="add the budget to the rule")
        if rule.at_least == "all" and rule.kind != "rungs":
            raise InputError(f"`at_least: all` means nothing for a {rule.kind} rule", where=where, hint="give a number")
        if rule.kind == "rungs" and isinstance(rule.at_least, float | int) and not (rule.at_least >= 1 and rule.at_least % 1 == 0):
            what = f"`at_least: {rule.at_least:g}` is no number of layers for a rungs rule"
            raise InputError(what, where=where, hint="give a whole number of 1 or more, or `all`")
        found.append(rule)
    return found
