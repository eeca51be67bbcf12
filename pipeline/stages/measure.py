"""Stage 6, measure: interleaved latency of all engines on real inputs, layer times, every engine's own quality, sizes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.arms import OnnxArms
from pipeline.records.checkpoint import Checkpoint
from pipeline.records.engines import Engine, Engines
from pipeline.records.evidence import Evidence
from pipeline.records.frozen import FrozenModel
from pipeline.records.measurement import Measurement, Size
from pipeline.records.quality import Quality
from pipeline.records.tactics import TacticReport
from pipeline.stages.base import Sections, Work, pick
from pipeline.stages.feeds import feeds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.builders.base import Backend
    from pipeline.latency import Samples
    from pipeline.sources.base import Data

REVISION = 2
NEEDS = ("train", "freeze", "export", "build", "tactics")


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Its own section, the data and the model that prepares them, the gate's rules (they may end sampling), and the machine that times."""
    from pipeline import builders, machine, sources

    section = sections["build"]
    return {
        **pick(sections, "measure", "data", "model", "gate", "seed"),
        "sources": sources.digests(sections["data"], base),
        "backend": builders.describe(section["backend"], section),
        "cpu": machine.cpu_name(),
    }


def execute(work: Work) -> Measurement:
    """Time the arms against each other, then profile, evaluate and weigh the first build of each."""
    from pipeline import builders, latency
    from pipeline.stages import engine_parity, timing

    engines = work.record("build", Engines)
    first_builds = [engine for engine in engines.engines if engine.repeat == 1]
    backend = builders.backend(engines.backend, work.section("build"))
    data = work.data()
    batches = work.section("measure")["batches"] or [work.record("export", OnnxArms).batch["opt"]]
    shapes = {timing.shape_id(batch): {name: list(array.shape) for name, array in feeds(data.test, batch).items()} for batch in batches}
    alpha = work.section("gate")["alpha"]

    samples, observed, energy = timing.sample(backend, engines, data, batches, work, _decided(work))
    samples.save(work.folder / "samples.npz")
    parity = engine_parity.compare(backend, engines, work)
    return Measurement(
        samples=work.artifact(work.folder / "samples.npz"),
        timings=latency.timings(samples, shapes, alpha),
        ratios=latency.ratios(samples, timing.pairs(engines), timing.controls(engines), alpha),
        layers=timing.layer_times(backend, first_builds, data, batches, work),
        quality={**_carried(work), **{engine.name: _evaluate(backend, engine, data, work) for engine in first_builds}},
        sizes=[size for engine in first_builds for size in _sizes(engine, work)],
        energy=energy,
        parity=parity,
        conditions=timing.conditions(backend, engines, samples, observed, parity),
        stopped="; ".join(f"{shape}: {sampling.stopped}" for shape, sampling in samples.sampling.items()),
    )


def _decided(work: Work) -> Callable[[Samples], bool] | None:
    """Are the gate's latency rules decided? The intervals hold at any stopping time, so asking costs nothing."""
    from pipeline import judging

    if not work.section("measure")["stop_early"]:
        return None
    gate = work.section("gate")
    records: dict[str, Any] = {stage: upstream.record for stage, upstream in work.upstream.items()}
    return judging.decided(gate["rules"], Evidence(**records), gate["alpha"])


def _evaluate(backend: Backend, engine: Engine, data: Data, work: Work) -> list[Quality]:
    """The engine's own outputs on the held-out split."""
    from pipeline.stages.evaluation import evaluate, run_over

    work.progress(f"evaluate {engine.name}", 0)
    batch = work.record("export", OnnxArms).batch["max"]
    session = backend.load(engine, work.upstream["build"].folder)
    try:
        return evaluate(
            lambda split: run_over(split, session.run, batch),
            data,
            who=engine.name,
            backend=backend.name,
            work=work,
            splits=("test",),
        )
    finally:
        session.close()


def _carried(work: Work) -> dict[str, list[Quality]]:
    """What training measured of the torch models, for comparison; their predictions stay with `train`."""
    if "train" not in work.upstream:
        return {}
    checkpoint = work.record("train", Checkpoint)
    return {"torch:dense": checkpoint.dense_quality, "torch:masked": checkpoint.masked_quality}


def _sizes(engine: Engine, work: Work) -> Sequence[Size]:
    """What an arm takes on disk and what its weights would take, by way of holding them."""
    from pipeline.graph import storage

    arm = work.record("export", OnnxArms).named(engine.onnx_arm)
    frozen = work.record("freeze", FrozenModel) if "freeze" in work.upstream else None
    state = getattr(frozen, engine.onnx_arm, None)
    build = next((build for build in work.record("tactics", TacticReport).builds if build.arm == engine.name), None)
    model = work.file("export", arm.model)
    return storage.arm_sizes(
        engine.name,
        arm.check.layers,
        model=[model, *(model.parent / file.path for file in arm.check.model.external)],
        plan=work.file("build", engine.plan),
        state_dict=work.file("freeze", state) if state else None,
        memory=storage.device_memory(build.memory if build else {}),
    )
