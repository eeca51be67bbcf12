"""`--require PATTERN`: must these layers be selected, and are they?

A pattern is held against every name that an engine layer goes by: its own, its horizontal parts (`a || b`), the operators of a fused
name (`a + b`, `PWN(a, b)`), and the ONNX nodes that its metadata names. What it matches is the engine layer as a whole: the
pattern holds only if that layer is selected, in every place where it matches.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import msgspec

from pipeline.errors import ExitCode, InputError
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, TacticLayer, TacticReport
from pipeline.tactics.names import leaves, profile_of, split_depth0
from pipeline.tactics.unseen import glob, unseen

REFORMAT = re.compile(r"Reformatting CopyNode for (?:Network )?(?:Input|Output) ")
"""How the layers begin that TensorRT puts in to change a format: `Reformatting CopyNode for Input Tensor 0 to conv1 + relu1`."""


class Unmet(msgspec.Struct, frozen=True):
    """One layer that is not known to be selected, or a pattern of which it is not known whether a layer matches."""

    pattern: str
    build: int | None
    layer: str | None
    selected: Rung
    why: str | None = None
    """Where no layer matches: what the sources leave out."""

    @property
    def text(self) -> str:
        """One sentence."""
        if self.layer is None:
            return f"--require {self.pattern}: no layer matches, but there may be one: {self.why}"
        return f"--require {self.pattern}: build {self.build}: {self.layer!r} is selected: {self.selected}"


def _own_names(layer: TacticLayer) -> set[str]:
    return {layer.id, layer.name, profile_of(layer.name)[0]}


def _names(layer: TacticLayer) -> set[str]:
    fused = (piece for part in layer.parts for piece in split_depth0(part, " + "))
    return _own_names(layer) | {*layer.parts, *fused, *leaves(layer.name), *layer.onnx_nodes}


def _matched(report: TacticReport, pattern: re.Pattern[str]) -> list[tuple[Build, TacticLayer]]:
    """Layers that go by a name that matches; a reformat carries its neighbour's name and counts only where nothing else does."""
    found = [(build, layer) for build in report.builds for layer in build.layers if any(map(pattern.match, _names(layer)))]
    return [(build, layer) for build, layer in found if not REFORMAT.match(layer.name)] or found


def unmet(report: TacticReport, patterns: Sequence[str]) -> list[Unmet]:
    """The layers that a pattern names and that are not selected, in every build that has them.

    Raises:
        InputError: a pattern is empty, or matches no layer where the sources would show one.
    """
    found: list[Unmet] = []
    for pattern in patterns:
        if not pattern.strip():
            raise InputError("the pattern is empty", where="--require", hint="give the name of a layer (an unset variable?)")
        compiled = glob(pattern)
        matched = _matched(report, compiled)
        if not matched and (why := unseen(report, pattern)) is not None:
            found.append(Unmet(pattern, None, None, Rung.UNKNOWN, why))
            continue
        if not matched:
            raise InputError(f"no layer matches {pattern!r}", where="--require", hint=_where_names_are(report))
        standing = [(build.id, layer.id, _in_an_engine(build, layer, _selected(layer, compiled))) for build, layer in matched]
        found += [Unmet(pattern, build, layer, selected) for build, layer, selected in standing if selected is not Rung.YES]
    return found


def _where_names_are(report: TacticReport) -> str:
    files = shlex.join(source.path for source in report.sources) or "FILE"
    by_lists = all(layer.tactic is None and layer.candidates is None for build in report.builds for layer in build.layers)
    only = "; only eligible layers are named there: any other one was not selected either" if by_lists else ""
    return f"sparsegate tactics {files} --format csv lists the names{only}"


def _selected(layer: TacticLayer, pattern: re.Pattern[str]) -> Rung:
    """That some kernel of a region is sparse does not say that the one of a node within it is."""
    within = "ForeignNode[" in layer.name and not any(map(pattern.match, _own_names(layer)))
    return Rung.UNKNOWN if within and layer.selected is Rung.YES else layer.selected


def _in_an_engine(build: Build, layer: TacticLayer, selected: Rung) -> Rung:
    """A build that failed left no engine with what was selected; nor is one known where only choices before a cut end tell of it."""
    told = any(seen.rung == "selected" and seen.kind != "choice" for seen in layer.evidence)
    known = build.result != "failed" and (build.result != "cut" or told)
    return selected if known or selected is not Rung.YES else Rung.UNKNOWN


def exit_code(failures: Sequence[Unmet]) -> ExitCode:
    """1 where a layer is not selected, 3 where it is only unknown or disputed."""
    if any(failure.selected is Rung.NO for failure in failures):
        return ExitCode.FAIL
    return ExitCode.UNDECIDED if failures else ExitCode.PASS
