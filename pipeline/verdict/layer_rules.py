"""Budgets over layers: how many stand on a rung, named ones among them, none disputed; and selection over several builds."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from pipeline.records.evidence import Evidence
from pipeline.records.rung import Rung
from pipeline.records.verdict import JudgedRule, RuleResult
from pipeline.verdict.budget import Rule
from pipeline.verdict.facts import Facts
from pipeline.verdict.standing import RUNGS, TACTIC_RUNGS, Standing, builds_of, in_no_engine_layer, layers_meant, of_build, of_the_model

SEE_NAMES = "see the names: sparsegate report RUN --format md"


def rungs(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """At least so many layers on the rung, all named ones, none disputed."""
    assert rule.rung is not None
    row = _row(rule)
    not_here = _not_applicable(rule.rung, facts.evidence)
    if not_here:
        return [row(RuleResult.INCONCLUSIVE, not_here, "build with TensorRT")]
    meant = layers_meant(facts.evidence) if rule.at_least == "all" else set()
    joined = rule.at_least == "all" and rule.rung in TACTIC_RUNGS
    standing = of_the_model(facts.evidence, rule, meant) if joined else RUNGS[rule.rung](facts.evidence, rule.arm)
    if standing is None:
        return [row(RuleResult.INCONCLUSIVE, f"no record says which layers of {rule.arm} are {rule.rung}", "run the stage that proves it")]
    proven = {layer for layer, rung in standing.by_layer.items() if rung is Rung.YES}
    open_ = {layer: rung for layer, rung in standing.by_layer.items() if rung in (Rung.UNKNOWN, Rung.DISPUTED)}
    wanted = int(rule.at_least or 0) if rule.at_least != "all" else len(meant)
    if rule.at_least == "all" and not wanted:
        return [row(RuleResult.INCONCLUSIVE, "no record names a layer that is to be 2:4", "give a number instead of `all`")]
    value = len(proven & meant) if joined else len(proven)
    named, missing = _named(rule.layers, standing)
    if missing:
        return [row(RuleResult.FAIL, f"no layer is called {', '.join(missing)}", SEE_NAMES, value, wanted)]
    disputed = sorted(layer for layer, rung in open_.items() if rung is Rung.DISPUTED and (not named or layer in named))
    if disputed:
        return [row(RuleResult.INCONCLUSIVE, f"sources disagree on {_list(disputed)}", "read the layer info of the engine", value, wanted)]
    if rule.rung == "selected" and _names_only(facts.evidence, rule.arm):
        why = "the layer info holds names only, so no kernel's name proves a selection"
        return [row(RuleResult.INCONCLUSIVE, why, "export layer info with profilingVerbosity=detailed", value, wanted)]
    absent = sorted((named | meant) - proven)
    if any(layer not in open_ for layer in absent) or value + len(open_) < wanted:
        why = f"{_list(absent)} not {rule.rung}" if absent else f"{value} of {wanted} layers are {rule.rung}"
        return [row(RuleResult.FAIL, why, None, value, wanted)]
    if absent or value < wanted:
        gone = in_no_engine_layer(standing, facts.evidence, rule.arm) if joined else []
        hidden = f"; in no engine layer: {_list(gone)}" if gone else ""
        return [
            row(
                RuleResult.INCONCLUSIVE,
                f"{value} are {rule.rung}, {len(open_)} unknown ({_list(sorted(open_))}){hidden}",
                "see why they are unknown: sparsegate report RUN --format md",
                value,
                wanted,
            )
        ]
    also = f", {_list(sorted(named))} among them" if named else ""
    return [row(RuleResult.PASS, f"{value} layers are {rule.rung}{also}", None, value, wanted)]


def stability(rule: Rule, facts: Facts) -> list[JudgedRule]:
    """The named layers (else every layer selected in any build) are selected in at least k of the n builds."""
    row = _row(rule)
    not_here = _not_applicable("selected", facts.evidence)
    if not_here:
        return [row(RuleResult.INCONCLUSIVE, not_here, "build with TensorRT")]
    builds = builds_of(facts.evidence, rule.arm)
    wanted = rule.builds or len(builds)
    if len(builds) < max(2, wanted):
        return [
            row(
                RuleResult.INCONCLUSIVE,
                f"{len(builds)} builds of {rule.arm} were read",
                f"set build.repeats to {max(2, wanted)} or more",
                len(builds),
                wanted,
            )
        ]
    layers = [of_build(build, "selected") for build in builds]
    every = {layer for standing in layers for layer, rung in standing.by_layer.items() if rung is Rung.YES}
    if rule.layers:
        found = [_named(rule.layers, standing) for standing in layers]
        every = {layer for named, _ in found for layer in named}
        missing = [pattern for pattern in rule.layers if all(pattern in absent for _, absent in found)]
        if missing:
            return [row(RuleResult.FAIL, f"no layer is called {', '.join(missing)}", SEE_NAMES, None, wanted)]
    times = {layer: [standing.by_layer.get(layer, Rung.UNKNOWN) for standing in layers] for layer in sorted(every)}
    sure = {layer: sum(rung is Rung.YES for rung in rungs_) for layer, rungs_ in times.items()}
    possible = {layer: sum(rung not in (Rung.NO, Rung.NOT_APPLICABLE) for rung in rungs_) for layer, rungs_ in times.items()}
    if not times:
        return [row(RuleResult.FAIL, "no layer is selected in any build", None, 0, wanted)]
    worst = min(sure, key=lambda layer: sure[layer])
    why = f"{worst} is selected in {sure[worst]} of {len(builds)} builds, the fewest of {len(times)} layers"
    if sure[worst] >= wanted:
        return [row(RuleResult.PASS, why, None, sure[worst], wanted)]
    outcome = RuleResult.FAIL if min(possible.values()) < wanted else RuleResult.INCONCLUSIVE
    return [row(outcome, why, "rebuild with a timing cache, or see what differs: sparsegate diff RUN", sure[worst], wanted)]


def _not_applicable(rung: str, evidence: Evidence) -> str | None:
    if rung not in TACTIC_RUNGS:
        return None
    if evidence.build is not None and evidence.build.sparse_kernels is False:
        return f"{evidence.build.backend} has no sparse kernels: `{rung}` is not applicable there"
    if evidence.tactics is not None and not evidence.tactics.applicable:
        return evidence.tactics.why_not or f"`{rung}` is not applicable"
    return None


def _names_only(evidence: Evidence, arm: str) -> bool:
    """Layer info was read for the arm's build, and not one layer has a kernel's name."""
    report = evidence.tactics
    for build in builds_of(evidence, arm)[:1]:
        info = report is not None and any(report.sources[at].kind == "layer-info" for at in build.sources if at < len(report.sources))
        return info and not any(layer.tactic and layer.tactic.name for layer in build.layers)
    return False


def _named(patterns: list[str], standing: Standing) -> tuple[set[str], list[str]]:
    """Layers that a pattern matches by any of their names, and the patterns that match none."""
    matched = {
        pattern: {layer for layer, names in standing.names.items() if any(matches(name, pattern) for name in names)} for pattern in patterns
    }
    return set().union(*matched.values()), [pattern for pattern, layers in matched.items() if not layers]


def matches(name: str, pattern: str) -> bool:
    """Glob match with `*` and `?`; `[` is literal, since layer names hold brackets."""
    return fnmatchcase(name, re.sub(r"\[", "[[]", pattern))


def _list(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _counted(rule: Rule) -> str:
    """What a number of layers counts: an engine has layers of its own, fused or split otherwise than the model's."""
    if rule.rung not in TACTIC_RUNGS:
        return f"{rule.rung} layers of {rule.arm}"
    return f"{rule.rung} {'model' if rule.at_least == 'all' else 'engine'} layers of {rule.arm}"


def _row(rule: Rule) -> Callable[..., JudgedRule]:
    what = _counted(rule) if rule.kind == "rungs" else f"sparse tactics of {rule.arm} over its builds"
    least = rule.at_least if isinstance(rule.at_least, str) or rule.at_least is None else f"{rule.at_least:g}"
    wanted = [f"at least {least}"] if least is not None else []
    wanted += [f"in at least {rule.builds or 'all'} builds"] if rule.kind == "stability" else []
    wanted += [f"with {_list(rule.layers)}"] if rule.layers else []
    key = ",".join([*([f"{rule.at_least}"] if rule.at_least is not None else []), *rule.layers])
    of = f"{rule.kind}:{rule.arm}" + (f":{rule.rung}" if rule.rung else "") + (f":{key}" if key else "")

    def row(outcome: RuleResult, why: str, needs: str | None, value: float | None = None, budget: float | None = None) -> JudgedRule:
        return JudgedRule(
            id=of,
            kind=rule.kind,
            outcome=outcome,
            text=f"{what}: {', '.join(wanted)}",
            why=why,
            needs=needs,
            value=value,
            budget=budget,
            unit="layers" if rule.kind == "rungs" else "builds",
        )

    return row
