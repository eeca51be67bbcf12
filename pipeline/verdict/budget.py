"""A budget as plain data: what a recipe's `gate.rules` or a program gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from pipeline.errors import InputError

BASELINE = "baseline"
"""As a rule's `over`: the stored baseline."""
DENSE = "dense"
"""What a loss of quality is measured against unless the rule says otherwise."""


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


DEFAULTS: dict[str, Any] = {field.name: [] if field.name == "layers" else field.default for field in msgspec.structs.fields(Rule)}
"""Per field: what stands for `not given`."""
NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "latency": (("at_most",),),
    "quality": (("drop_at_most", "at_least"),),
    "rungs": (("rung",), ("at_least", "layers")),
    "stability": (),
    "size": (("at_most",), ("size",)),
    "energy": (("at_most",),),
}
"""Per kind: of each group at least one field must be given."""
READS: dict[str, frozenset[str]] = {
    "latency": frozenset({"over", "metric", "batch", "profile", "quantile", "claim", "at_most"}),
    "quality": frozenset({"over", "head", "slice", "drop_at_most", "at_least"}),
    "rungs": frozenset({"rung", "at_least", "layers"}),
    "stability": frozenset({"layers", "builds"}),
    "size": frozenset({"over", "size", "at_most"}),
    "energy": frozenset({"over", "batch", "at_most"}),
}
"""Per kind: the fields that it reads beside `kind` and `arm`; another one would be a budget that nobody holds."""


def parse(rules: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """Check and convert budgets.

    Raises:
        InputError: an unknown key, a value of the wrong type, a kind without its budget, or a budget that is never judged or
            cannot fail; names the rule's number.
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
        _can_fail(rule, where)
        found.append(rule)
    return found


def _can_fail(rule: Rule, where: str) -> None:
    """Refuse a budget that is never judged.

    Raises:
        InputError: a field that the kind does not read, or an arm that is held against itself.
    """
    for field in sorted(set(rule.__struct_fields__) - READS[rule.kind] - {"kind", "arm"}):
        if getattr(rule, field) != DEFAULTS[field]:
            what = f"a {rule.kind} rule does not read `{field}`"
            raise InputError(
                what, where=where, hint=f"it reads {', '.join(sorted(READS[rule.kind]))}; give `{field}` a rule of its own kind"
            )
    over = DENSE if rule.over is None and rule.drop_at_most is not None else rule.over
    if over == rule.arm:
        what = f"the arm {rule.arm} is held against itself: such a {rule.kind} rule cannot fail"
        raise InputError(what, where=where, hint="name another arm as `over`, or as `arm`")
