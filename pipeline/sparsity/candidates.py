"""Which layers may be masked: rules in order, each a row; the first that applies names why a layer stays dense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.pattern import GROUP
from pipeline.sparsity.names import matching
from pipeline.sparsity.sites import Site

FEWEST = 2 * GROUP
"""Fewer input channels than this stay dense."""


@dataclass(frozen=True)
class _Rule:
    code: str
    applies: Callable[[Site], bool]
    text: Callable[[Site], str]


def _depthwise(site: Site) -> bool:
    return site.groups > 1 and site.shape[1] == 1


# Facts that no recipe can change come first, then the defaults for layers that could be masked without gain.
RULES: tuple[_Rule, ...] = (
    _Rule("SG310", lambda s: bool(s.tied_kinds), lambda s: f"{s.key} is shared with {', '.join(sorted(set(s.tied_kinds)))}"),
    _Rule("SG304", lambda s: not s.supported, lambda s: f"a {s.kind} parameter of shape {list(s.shape)} is not masked"),
    _Rule("SG305", lambda s: s.parameter is None, lambda s: f"a parametrization computes {s.key}"),
    _Rule("SG307", _depthwise, lambda s: f"depthwise: {s.groups} groups of 1 input channel"),
    _Rule("SG306", lambda s: bool(s.shape[1] % GROUP), lambda s: f"{s.shape[1]} input channels are no multiple of {GROUP}"),
    _Rule("SG308", lambda s: s.groups > 1, lambda s: f"{s.groups} groups of {s.shape[1]} input channels"),
    _Rule("SG309", lambda s: s.shape[1] < FEWEST, lambda s: f"{s.shape[1]} input channels, fewer than {FEWEST}"),
)


def why_dense(sites: Sequence[Site], *, include: Sequence[str], exclude: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The layers that stay dense: rule and text by weight key; a layer that is absent may be masked.

    Args:
        sites: All layers.
        include: Globs over layer or module names: candidates.
        exclude: Globs over layer or module names: stay dense.

    Raises:
        InputError: a pattern that matches no layer.
    """
    included = _matching(include, sites, "train.masks.include")
    excluded = _matching(exclude, sites, "train.masks.exclude")
    reasons: dict[str, tuple[str, str]] = {}
    for site in sites:
        if site.key in excluded:
            reasons[site.key] = ("SG302", f"excluded by the pattern {excluded[site.key]!r}")
        elif site.key not in included:
            reasons[site.key] = ("SG303", "no pattern of train.masks.include matches")
        elif rule := next((rule for rule in RULES if rule.applies(site)), None):
            reasons[site.key] = (rule.code, rule.text(site))
    return reasons


def _matching(patterns: Sequence[str], sites: Sequence[Site], option: str) -> dict[str, str]:
    keys = {name: site.key for site in sites for name in (*site.modules, site.layer)}
    return {keys[name]: pattern for name, pattern in matching(patterns, keys, option=option).items()}
