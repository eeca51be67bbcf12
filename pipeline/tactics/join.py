"""Which build a layer-info, profile or times file belongs to."""

from __future__ import annotations

from pathlib import PurePath

from pipeline.errors import InputError
from pipeline.tactics.builds import BuildLog
from pipeline.tactics.documents import DETAILED, Document

HALF = 0.5


def join(builds: list[BuildLog], documents: list[Document], wanted: int | None) -> None:
    """Attach each document to its build, or make it a build of its own. Builds are extended in place.

    Args:
        builds: Builds of all logs, in the order of the report.
        documents: Layer info first, since a profile may belong to it.
        wanted: `--build N`.

    Raises:
        InputError: no build N, a tie, or a document that says too little to stand alone.
    """
    if wanted is not None and not 0 <= wanted < len(builds) and any(documents) and builds:
        raise InputError(f"there is no build {wanted}", where="--build", hint=f"builds are numbered 0 to {len(builds) - 1}")
    order = {"layer-info": 0, "profile": 1, "times": 2}
    for document in sorted(documents, key=lambda d: order[d.kind]):
        build = _owner(builds, document, wanted)
        if build is None:
            build = _alone(document)
            builds.append(build)
        build.joined.append(document.source)
        if document.kind == "layer-info":
            build.layer_info = document.layers
        build.profile_ms.update(document.profile_ms)
        build.facts.performance = {**document.performance, **build.facts.performance}


def _owner(builds: list[BuildLog], document: Document, wanted: int | None) -> BuildLog | None:
    if wanted is not None and wanted < len(builds):
        return builds[wanted]
    named = [build for build in builds if PurePath(document.path).name in (build.command or "")]
    if document.kind == "times":
        if len(builds) == 1 or len(named) == 1:
            return named[0] if len(named) == 1 else builds[0]
        if not builds:
            raise InputError("these times are of no build", where=document.path, hint="give the build's log, or its layer info, too")
        raise InputError(f"{len(builds)} builds may have these times", where=document.path, hint="say which one: --build N")
    names = document.names
    if not names:
        raise InputError("the file names no layers", where=document.path, hint="export it again from a build that succeeded")
    covered = [(len(names & _names(build)) / len(names), build) for build in builds]
    best = max((share for share, _ in covered), default=0.0)
    if best < HALF:
        return None
    tied = [build for share, build in covered if share == best]
    if len(tied) > 1:
        tied = [build for build in tied if any(build is other for other in named)] or tied
    if len(tied) > 1:
        numbers = ", ".join(str(i) for i, build in enumerate(builds) if any(build is other for other in tied))
        raise InputError(f"the layers of builds {numbers} fit equally well", where=document.path, hint="say which one: --build N")
    return tied[0]


def _names(build: BuildLog) -> set[str]:
    return build.layer_names() | build.listed


def _alone(document: Document) -> BuildLog:
    if not document.detailed:
        raise InputError(
            "the layer info holds only names: it was exported without the details that name kernels",
            where=document.path,
            hint=f"build and export again with {DETAILED}, or give the build's log too",
        )
    return BuildLog(document.source)
