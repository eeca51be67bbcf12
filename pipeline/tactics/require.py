"""`--require PATTERN`: must these layers be selected, and are they?"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

import msgspec

from pipeline.errors import ExitCode, InputError
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer, TacticReport


class Unmet(msgspec.Struct, frozen=True):
    """One layer that is not known to be selected."""

    pattern: str
    build: int
    layer: str
    selected: Rung


def glob(pattern: str) -> re.Pattern[str]:
    """A glob over layer names; `[` stands for itself, since names hold it."""
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")), re.DOTALL)


def _names(layer: TacticLayer) -> list[str]:
    return [layer.id, layer.name, *layer.parts, *layer.onnx_nodes]


def unmet(report: TacticReport, patterns: Sequence[str]) -> list[Unmet]:
    """The layers that a pattern names and that are not selected, in every build that has them.

    Raises:
        InputError: a pattern matches no layer.
    """
    found: list[Unmet] = []
    for pattern in patterns:
        compiled = glob(pattern)
        matched = [(build, layer) for build in report.builds for layer in build.layers if any(map(compiled.match, _names(layer)))]
        if not matched:
            raise InputError(
                f"no layer matches {pattern!r}", where="--require", hint="sparsegate tactics FILE --format csv lists the names"
            )
        standing = [(build.id, layer.id, _in_an_engine(build, layer.selected)) for build, layer in matched]
        found += [Unmet(pattern, build, layer, selected) for build, layer, selected in standing if selected is not Rung.YES]
    return found


def _in_an_engine(build: Build, selected: Rung) -> Rung:
    """A build that failed left no engine that could run what was selected."""
    return Rung.UNKNOWN if build.result == "failed" and selected is Rung.YES else selected


def exit_code(failures: Sequence[Unmet]) -> ExitCode:
    """1 where a layer is not selected, 3 where it is only unknown or disputed."""
    if any(failure.selected is Rung.NO for failure in failures):
        return ExitCode.FAIL
    return ExitCode.UNDECIDED if failures else ExitCode.PASS
