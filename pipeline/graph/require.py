"""Layers that must be 2:4 and, where a target is given, eligible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.errors import ExitCode, InputError
from pipeline.records.check import CheckedLayer, CheckReport, Target
from pipeline.records.rung import Rung


@dataclass(frozen=True)
class Required:
    """How required layers stand."""

    exit_code: ExitCode
    lines: list[str]


def require(report: CheckReport, patterns: Sequence[str]) -> Required:
    """Judge the layers that patterns name.

    Args:
        report: What was found.
        patterns: Globs (`*` and `?`; `[` is literal) over node names, with or without the graph's path in front.

    Raises:
        InputError: a pattern matches no layer.
    """
    stands: dict[int, Rung] = {}
    for pattern in patterns:
        found = [at for at, layer in enumerate(report.layers) if matches(pattern, layer)]
        if not found:
            raise InputError(f"no layer matches {pattern!r}", where="--require", hint="names are in the first column of the check's table")
        stands |= {at: stand(report.layers[at], report.target) for at in found}
    lines = [f"required: {report.layers[at].node}: {rung.value}" for at, rung in sorted(stands.items())]
    for rung, code in ((Rung.NO, ExitCode.FAIL), (Rung.UNKNOWN, ExitCode.UNDECIDED)):
        if rung in stands.values():
            return Required(code, lines)
    return Required(ExitCode.PASS, lines)


def stand(layer: CheckedLayer, target: Target) -> Rung:
    """Whether a required layer passes."""
    if layer.two_four is False:
        return Rung.NO
    if target != Target():
        return layer.eligible if layer.two_four or layer.eligible is Rung.NO else Rung.UNKNOWN
    if layer.two_four:
        return Rung.YES
    # Not constant: no build can make it 2:4. Constant, but not computed here: nobody knows yet.
    return Rung.NO if layer.weight is None else Rung.UNKNOWN


def matches(pattern: str, layer: CheckedLayer) -> bool:
    """Whether a glob matches a layer's name."""
    return glob(pattern, layer.node, layer.graph)


def glob(pattern: str, node: str, graph: str) -> bool:
    """Whether a glob (`*` and `?`; `[` is literal) matches a node's name, alone or behind its graph's path."""
    parts = {"*": ".*", "?": "."}
    wanted = re.compile("".join(parts.get(char, re.escape(char)) for char in pattern), re.DOTALL)
    return any(wanted.fullmatch(name) for name in (node, f"{graph}/{node}"))
