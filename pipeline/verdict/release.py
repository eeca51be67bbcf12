"""What is never released, whatever the budgets say: one row per ground."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipeline.records.evidence import Evidence
from pipeline.records.verdict import JudgedRule, RuleResult

STRIPPED_OPTIONS = ("refit", "refittable", "refitted", "strip", "stripped", "strip_plan", "strip_weights")
STRIPPED_FLAGS = re.compile(r"--(refit|stripWeights|stripAllWeights)\b")
FORCED_FLAG = re.compile(r"--sparsity=force\b")


class Ground(NamedTuple):
    """One reason to release nothing of an arm."""

    id: str
    text: str
    why: Callable[[Evidence, str], str | None]
    """(records, arm) -> what was found, None where it does not apply."""


def _of_builds(arm: str) -> str:
    """The arm that `sparse#2` is a build of: what one build did, all of them are held to."""
    return arm.partition("#")[0]


def _options(evidence: Evidence, arm: str) -> list[dict[str, object]]:
    engines = evidence.build.engines if evidence.build else []
    return [dict(engine.options) for engine in engines if engine.arm == _of_builds(arm)]


def _commands(evidence: Evidence, arm: str) -> list[tuple[str | None, str]]:
    builds = evidence.tactics.builds if evidence.tactics else []
    return [(build.sparsity, build.command or "") for build in builds if _of_builds(build.arm or "") == _of_builds(arm)]


def _forced(evidence: Evidence, arm: str) -> str | None:
    if any(str(options.get("sparsity", "")) in ("force", "forced") for options in _options(evidence, arm)):
        return "the build's options force sparsity"
    if any(sparsity == "forced" or FORCED_FLAG.search(command) for sparsity, command in _commands(evidence, arm)):
        return "the build log says that sparsity was forced: the builder overwrote weights to make them 2:4"
    return None


def _stripped(evidence: Evidence, arm: str) -> str | None:
    for options in _options(evidence, arm):
        on = [name for name in STRIPPED_OPTIONS if options.get(name) not in (None, False, "", 0)]
        if on:
            return f"the plan was built with {', '.join(on)}: its weights are not the ones that were proved"
    if any(STRIPPED_FLAGS.search(command) for _, command in _commands(evidence, arm)):
        return "the build's command refits or strips weights: they are not the ones that were proved"
    return None


def _not_finite(evidence: Evidence, arm: str) -> str | None:
    """NaN or infinity in what the arm's engines, any build of them, said of the test split."""
    measured = evidence.measure.quality if evidence.measure else {}
    found = [(name, one) for name, many in measured.items() if name.partition("#")[0] == arm.partition("#")[0] for one in many]
    broken = [(name, head) for name, one in found if one.split == "test" for head in one.heads if head.nonfinite]
    return (
        "; ".join(f"{name}: {head.nonfinite} of {head.n} samples have a NaN or infinite output {head.head}" for name, head in broken)
        or None
    )


GROUNDS: tuple[Ground, ...] = (
    Ground("forced-sparsity", "weights that the builder forced to 2:4 are never released", _forced),
    Ground("refitted-plan", "a refitted, refittable or stripped plan is never released", _stripped),
    Ground("nonfinite-outputs", "an engine whose outputs are NaN or infinite is never released", _not_finite),
)


def never_released(evidence: Evidence, arms: Sequence[str]) -> list[JudgedRule]:
    """A failing row for every ground that applies to an arm."""
    return [
        JudgedRule(id=f"release:{arm}:{ground.id}", kind="release", outcome=RuleResult.FAIL, text=f"{arm}: {ground.text}", why=why)
        for arm in arms
        for ground in GROUNDS
        if (why := ground.why(evidence, arm)) is not None
    ]
