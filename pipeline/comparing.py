"""The sources of `diff` and `stability`: what a path holds (a run, a tactic report, a log), and which of its builds is meant."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from pipeline.commands import names
from pipeline.errors import InputError
from pipeline.records.difference import DiffReport, StabilityReport
from pipeline.records.evidence import Evidence, read_evidence
from pipeline.records.io import read
from pipeline.records.tactics import Build, TacticReport
from pipeline.verdict.diff import diff_builds
from pipeline.verdict.diff_runs import diff_runs, run_build
from pipeline.verdict.joining import builds_of
from pipeline.verdict.stability import stability as over_builds

Source = str | Path


def diff(a: Source, b: Source, *, arm: str, builds: Sequence[int]) -> DiffReport:
    """As `api.diff`."""
    folders = [Path(source) for source in (a, b)]
    if all(map(_is_run, folders)):
        return diff_runs(_run(folders[0], arm), _run(folders[1], arm), arm)
    mine, theirs = (_one_build(source, arm, number) for source, number in zip((a, b), _chosen(builds, 2), strict=True))
    return diff_builds(mine, theirs, names=(str(a), str(b)), look=_look(b))


def _look(source: Source) -> str:
    """What shows the layers of one source: a report as JSON is itself all that there is."""
    path = Path(source)
    if _is_run(path):
        return f"sparsegate report {names(read_evidence(path))['run']} --format md"
    named = shlex.quote(str(source))
    return f"its reasons are in {named}" if path.is_file() and _is_report(path) else f"sparsegate tactics {named}"


def stability(sources: Sequence[Source], *, arm: str, builds: Sequence[int]) -> StabilityReport:
    """As `api.stability`."""
    if len(sources) == 1:
        found = _builds(sources[0], arm)
        called = [build.arm or f"build {build.id}" for build in found]
    else:
        found = [_one_build(source, arm, number) for source, number in zip(sources, _chosen(builds, len(sources)), strict=True)]
        called = [str(source) for source in sources]
    if len(found) < 2:
        raise InputError(
            f"holds {len(found)} build of the arm {arm}: there is nothing to compare it with",
            where=str(sources[0]) if sources else None,
            hint="give a second source, or a run with build.repeats of 2 or more",
        )
    return over_builds(found, called)


def _chosen(builds: Sequence[int], sources: int) -> list[int | None]:
    """One build id per source; None where none was chosen."""
    return [*builds, *[None] * sources][:sources]


def _one_build(source: Source, arm: str, number: int | None) -> Build:
    if _is_run(Path(source)):
        return run_build(_run(Path(source), arm), arm)
    found = [build for build in _builds(source, arm) if number is None or build.id == number]
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"holds {len(found)} builds" if number is None else f"holds no build {number}",
        where=str(source),
        hint=f"choose with --build N, once for each source; sparsegate tactics {shlex.quote(str(source))} lists them",
    )


def _builds(source: Source, arm: str) -> list[Build]:
    """Builds of a run's arm, of a tactic report as JSON, or of a log."""
    path = Path(source)
    if _is_run(path):
        report = _run(path, arm).tactics
        return builds_of(report, arm) if report else []
    if path.is_file() and _is_report(path):
        return read(path, TacticReport).builds
    from pipeline import tactics

    return tactics.read([str(source)]).builds


def _run(folder: Path, arm: str) -> Evidence:
    """A run's records; an arm that was not built is a mistake, not an arm without layers."""
    evidence = read_evidence(folder)
    built = [engine.name for engine in evidence.build.engines] if evidence.build else []
    if built and arm not in built:
        hint = f"its arms are {', '.join(built)}"
        raise InputError(f"the run {names(evidence)['run']} has no arm {arm!r}", where="--arm", hint=hint)
    return evidence


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _is_report(path: Path) -> bool:
    """Whether a file is a tactic report as this program writes it: its schema stands at its beginning."""
    with path.open("rb") as file:
        return b'"sparsegate.tactics/' in file.read(200)
