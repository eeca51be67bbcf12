"""The tactic report as plain text, for pipes: one line for each eligible layer, names whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from pipeline.records.rung import Rung, tally
from pipeline.records.tactics import Build, LoadedRun, TacticLayer, TacticReport
from pipeline.report.tactics_advice import advice

MAX_TRUNCATED = 5
MAX_SKIPPED = 10


def shown(text: str) -> str:
    """Text from a file without control characters: it must not steer the terminal."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def lost_ms(layer: TacticLayer) -> float:
    """How much longer the best sparse tactic took than the best dense one; 0 where it did not, or is not known."""
    best = layer.best
    if layer.selected is Rung.YES or best is None or best.sparse is None or best.dense is None:
        return 0.0
    return max(0.0, best.sparse.ms - best.dense.ms)


def eligible_layers(build: Build) -> list[TacticLayer]:
    """Eligible layers, those first that lost most; selected ones last."""
    layers = [layer for layer in build.layers if layer.eligible in (Rung.YES, Rung.DISPUTED) or layer.selected is Rung.YES]
    return sorted(layers, key=lambda layer: (layer.selected is Rung.YES, -lost_ms(layer)))


def headline(build: Build) -> str:
    """What was built, in one line."""
    facts = [
        f"TensorRT {build.tensorrt or 'of unknown version'}",
        f"sparsity {build.sparsity or 'not stated'}",
        "+".join(build.precision),
        build.machine.get("gpu", ""),
        build.result or "",
    ]
    return f"build {build.id}: " + ", ".join(shown(fact) for fact in facts if fact)


def totals(build: Build) -> str:
    """Counts of the build, and reasons by how often they hold."""
    counts = Counter(reason.code for layer in eligible_layers(build) if layer.selected is not Rung.YES for reason in layer.reasons)
    reasons = ", ".join(f"{code} {count}" for code, count in counts.most_common())
    parts = [_counted(build, build.eligible, [layer.eligible for layer in build.layers], "eligible")]
    parts.append(_counted(build, build.selected, [layer.selected for layer in build.layers], "selected"))
    line = ", ".join([*parts, f"{len(build.disputed)} disputed"])
    if build.skipped_tactics:
        line += f", {build.skipped_tactics} tactic(s) skipped"
    return f"{line} ({reasons})" if reasons else line


def _counted(build: Build, names: Sequence[str], rungs: Sequence[Rung], word: str) -> str:
    """`3 eligible`, and of how many layers it is not known; a summary that names no layer tells too."""
    told, unknown = tally(rungs)
    if told is None and not names and not (build.passes and not rungs):
        return f"{word} not known"
    return f"{len(names)} {word}" + (f" ({unknown} not known)" if unknown else "")


def figures(layer: TacticLayer) -> tuple[str, str, str]:
    """Best sparse, best dense and the time lost, in ms; a mark where the two are of different formats."""
    best = layer.best
    if best is None:
        return "-", "-", "-"
    mark = "" if best.comparable else "*"
    sparse, dense = (f"{time.ms:.4g}" if time else "-" for time in (best.sparse, best.dense))
    lost = f"{lost_ms(layer):.4g}" if lost_ms(layer) and best.comparable else "-"
    return sparse + (mark if best.sparse and best.dense else ""), dense, lost


def places(report: TacticReport, layer: TacticLayer) -> str:
    """Where the evidence of each rung stands: the last line that speaks of it."""
    found = {
        item.rung: f"{PurePath(report.sources[item.source].path).name}:{item.line} ({item.rung})" for item in layer.evidence if item.line
    }
    return shown(", ".join(found.values()))


def render(report: TacticReport) -> str:
    """Conflicts first, then eligible layers by time lost, totals, and what would tell more."""
    lines = list(left_out(report))
    lines += [line for build in report.builds for line in _build(report, build)]
    lines += [line for run in report.runs for line in loaded(report, run)]
    return "\n".join(lines) + "\n"


def left_out(report: TacticReport) -> Iterator[str]:
    """The files that are no source of the report, a line each, those first that nobody read."""
    files = sorted(report.skipped, key=lambda one: one.read)
    for one in files[:MAX_SKIPPED]:
        yield shown(f"skipped {one.path}: {one.why}" + (f" (next: {one.hint})" if one.hint else ""))
    if len(files) > MAX_SKIPPED:
        yield f"and {len(files) - MAX_SKIPPED} more skipped files: --format json lists them"


def notes(report: TacticReport, build: Build) -> Iterator[str]:
    """Conflicts, findings and cut text, each with its place."""
    for conflict in build.conflicts:
        names = f": {', '.join(map(shown, conflict.layers))}" if conflict.layers else ""
        yield f"conflict {conflict.code}: {shown(conflict.text)}{names}"
    for finding in build.findings:
        names = f": {', '.join(map(shown, finding.names))}" if finding.names else ""
        yield f"note {finding.code} ({_path(report, finding.source)}:{finding.line}): {shown(finding.text)}{names}"
    for cut in build.truncated[:MAX_TRUNCATED]:
        line = "" if cut.line is None else f":{cut.line}"
        yield f"cut ({_path(report, cut.source)}{line}), not a name: {shown(cut.text)[:120]}"
    if len(build.truncated) > MAX_TRUNCATED:
        yield f"and {len(build.truncated) - MAX_TRUNCATED} more pieces of cut text"


def _build(report: TacticReport, build: Build) -> Iterator[str]:
    yield headline(build)
    yield from (f"  {note}" for note in notes(report, build))
    layers = eligible_layers(build)
    if layers:
        yield f"  {'selected':9} {'sparse ms':>9} {'dense ms':>9} {'lost ms':>9}  layer"
    for layer in layers:
        sparse, dense, lost = figures(layer)
        yield f"  {layer.selected:9} {sparse:>9} {dense:>9} {lost:>9}  {shown(layer.id)}"
        yield from (f"  {'':40}{reason.code}: {shown(reason.text)}" for reason in layer.reasons)
        if layer.reasons and (evidence := places(report, layer)):
            yield f"  {'':40}see {evidence}"
    if any("*" in figures(layer)[0] for layer in layers):
        yield "  * best sparse and best dense are of different formats: not comparable"
    yield f"  {totals(build)}"
    yield from (f"  next: {shown(step)}" for step in advice(build, layers))


def _path(report: TacticReport, source: int) -> str:
    return shown(report.sources[source].path)


def loaded(report: TacticReport, run: LoadedRun) -> Iterator[str]:
    """A run that loaded a plan."""
    yield f"run ({_path(report, run.source)}:{run.line}): loaded a plan, so it says nothing about sparsity: {shown(run.command)}"
    for finding in run.findings:
        yield f"  note {finding.code}: {shown(finding.text)}"
    if median := run.performance.get("gpu_compute_ms.median"):
        yield f"  GPU compute time: median {median:g} ms"
