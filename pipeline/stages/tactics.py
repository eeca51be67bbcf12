"""Stage 5, tactics: eligible, timed and selected by layer, from the engines' logs and layer info."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pipeline.records.arms import OnnxArms
from pipeline.records.engines import Engine, Engines
from pipeline.records.tactics import Build, Source, TacticReport
from pipeline.stages.base import Sections, Work

REVISION = 1
NEEDS = ("export", "build")


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Nothing but the builds decides this report."""
    return {}


def execute(work: Work) -> TacticReport:
    """Read every engine's log; on a backend without sparse kernels rungs 4 to 6 are not applicable."""
    engines = work.record("build", Engines)
    if engines.sparse_kernels is False:
        return TacticReport(applicable=False, why_not=f"the {engines.backend} backend has no sparse kernels")
    if engines.sparse_kernels is None:
        return TacticReport(why_not=f"the {engines.backend} builder does not report its choice of kernels: rungs 4 to 6 stay unknown")
    reports = [_read(engine, work) for engine in engines.engines]
    return _joined(reports)


def _read(engine: Engine, work: Work) -> TacticReport:
    from pipeline import api

    files = [artifact for artifact in (engine.log, engine.layer_info) if artifact]
    onnx = work.file("export", work.record("export", OnnxArms).named(engine.onnx_arm).model)
    report = api.read_log(*(work.file("build", artifact) for artifact in files), onnx=onnx)
    names = {str(work.file("build", artifact)): artifact.path for artifact in files}
    return msgspec.structs.replace(
        report,
        sources=[msgspec.structs.replace(source, path=names.get(source.path, source.path)) for source in report.sources],
        builds=[msgspec.structs.replace(build, arm=engine.name) for build in report.builds],
    )


def _joined(reports: list[TacticReport]) -> TacticReport:
    """One report over all engines: ids of builds and sources are counted on."""
    sources: list[Source] = []
    builds: list[Build] = []
    for report in reports:
        shift = len(sources)
        sources += report.sources
        builds += [_shifted(build, shift, len(builds) + offset) for offset, build in enumerate(report.builds)]
    return TacticReport(sources=sources, builds=builds, skipped=[one for report in reports for one in report.skipped])


def _shifted(build: Build, shift: int, new_id: int) -> Build:
    replace = msgspec.structs.replace
    return replace(
        build,
        id=new_id,
        sources=[source + shift for source in build.sources],
        layers=[replace(layer, evidence=[replace(item, source=item.source + shift) for item in layer.evidence]) for layer in build.layers],
        truncated=[replace(item, source=item.source + shift) for item in build.truncated],
    )
