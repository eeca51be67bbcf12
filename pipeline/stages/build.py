"""Stage 4, build: engines by arm and repeat, all else equal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.builders.base import ArmRequest
from pipeline.records.arms import OnnxArms
from pipeline.records.engines import Engines
from pipeline.stages.base import Sections, Work, pick

if TYPE_CHECKING:
    from pipeline.builders.base import Backend

REVISION = 1
NEEDS = ("export",)
ARMS = (("sparse", "sparse", True), ("twin", "sparse", False), ("dense", "dense", False))
"""(arm, ONNX file it is built from, sparsity flag): DESIGN's comparisons are between these."""
OWN_KEYS = frozenset({"backend", "repeats"})
"""Keys of the build section that this stage itself follows; a backend gets the others."""


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Its own section, and what the backend says decides its engines on this machine."""
    from pipeline import builders

    section = placed(sections["build"], base)
    return {**pick(sections, "build"), "backend": builders.describe(section["backend"], section)}


def execute(work: Work) -> Engines:
    """Build every arm that the export has a file for, as often as the recipe says."""
    from pipeline import builders

    section = placed(work.section("build"), work.base)
    backend = builders.backend(section["backend"], section)
    engines = [backend.build(request, work.folder, work.progress) for request in requests(work)]
    return Engines(
        backend=backend.name,
        sparse_kernels=backend.sparse_kernels,
        engines=engines,
        controls=[["sparse", "twin"]] if backend.flag_is_inert and len(engines) > 1 else [],
        profiles=profiles(work.record("export", OnnxArms), section["profiles"]),
        environment=_environment(backend),
        notes=[f"{engine.name}: {note}" for engine in engines for note in engine.notes],
    )


def placed(section: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The section with its path made absolute: it starts at the recipe's folder."""
    source = section["timing_cache_from"]
    return {**section, "timing_cache_from": str(base / source) if source else None}


def requests(work: Work) -> list[ArmRequest]:
    """One request per arm and repeat."""
    section = work.section("build")
    exported = work.record("export", OnnxArms)
    files = {arm.arm: arm for arm in exported.arms}
    options = {name: value for name, value in section.items() if name not in OWN_KEYS}
    return [
        ArmRequest(
            arm=arm,
            repeat=repeat,
            onnx=work.file("export", files[onnx_arm].model),
            onnx_arm=onnx_arm,
            sparse_weights=flag,
            precision=files[onnx_arm].precision,
            profiles=profiles(exported, section["profiles"]),
            options=options,
        )
        for repeat in range(1, section["repeats"] + 1)
        for arm, onnx_arm, flag in ARMS
        if onnx_arm in files
    ]


def profiles(exported: OnnxArms, asked: list[dict[str, Any]]) -> list[dict[str, dict[str, list[int]]]]:
    """The recipe's optimization profiles, or one over the exported batch range."""
    if asked:
        return [
            {name: {which: list(shapes[which]) for which in ("min", "opt", "max")} for name, shapes in profile.items()} for profile in asked
        ]
    return [
        {
            name: {which: [exported.batch[which] if size == "batch" else int(size) for size in shape] for which in ("min", "opt", "max")}
            for name, shape in exported.inputs.items()
        }
    ]


def _environment(backend: Backend) -> dict[str, str]:
    return {**backend.describe(), **backend.settings()}
