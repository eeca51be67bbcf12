"""Stage 6, measure: interleaved latency of all engines on real inputs, layer times, every engine's own quality, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.arms import OnnxArms
from pipeline.records.checkpoint import Checkpoint
from pipeline.records.engines import Engines
from pipeline.records.frozen import FrozenModel
from pipeline.records.measurement import Conditions, LayerTime, Measurement, Size
from pipeline.records.quality import Quality
from pipeline.stages.base import Sections, Work, pick

if TYPE_CHECKING:
    import numpy as np

    from pipeline.builders.base import Backend
    from pipeline.latency import Samples
    from pipeline.sources.base import Data

REVISION = 1
NEEDS = ("train", "freeze", "export", "build")
RATIOS = (("sparse", "dense"), ("sparse", "twin"))
"""What the release gains, and the effect of the flag."""


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Its own section, the data, the gate's rules (they end sampling early), and the machine that times."""
    from pipeline import builders, machine, sources

    section = sections["build"]
    return {
        **pick(sections, "measure", "data", "gate", "seed"),
        "sources": sources.digests(sections["data"], base),
        "backend": builders.describe(section["backend"], section),
        "cpu": machine.cpu_name(),
    }


def execute(work: Work) -> Measurement:
    """Time the arms against each other, then profile, evaluate and weigh each of them."""
    from pipeline import builders, latency, sources

    engines = work.record("build", Engines)
    backend = builders.backend(engines.backend, work.section("build"))
    data = sources.data_source(work.section("data"), work.base, work.section("model"))
    batches = work.section("measure")["batches"] or [work.record("export", OnnxArms).batch["opt"]]

    samples = _sample(backend, engines, data, batches, work)
    samples.save(work.folder / "samples.npz")
    return Measurement(
        samples=work.artifact(work.folder / "samples.npz"),
        timings=latency.timings(
            samples, {_shape(batch): _shapes(_feeds(data, batch)) for batch in batches}, alpha=work.section("gate")["alpha"]
        ),
        ratios=latency.ratios(samples, RATIOS, controls={tuple(pair) for pair in engines.controls}, alpha=work.section("gate")["alpha"]),
        layers=_layer_times(backend, engines, data, batches, work),
        quality={**_carried(work), **_engine_quality(backend, engines, data, work)},
        sizes=_sizes(engines, work),
        conditions=Conditions(backend=backend.name, device=_device(engines), settings=backend.settings()),
        stopped=samples.stopped,
    )


def _shape(batch: int) -> str:
    return f"batch={batch}"


def _feeds(data: Data, batch: int) -> dict[str, np.ndarray]:
    """Real inputs of the held-out split; repeated in order where it holds fewer than a batch."""
    import numpy as np

    return data.test.batch(np.arange(batch) % len(data.test))[0]


def _shapes(feeds: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
    return {name: list(array.shape) for name, array in feeds.items()}


def _sample(backend: Backend, engines: Engines, data: Data, batches: list[int], work: Work) -> Samples:
    """All arms at every batch size, each arm with a session of its own."""
    from pipeline import latency
    from pipeline.latency import Plan, Samples

    section = work.section("measure")
    plan = Plan(seconds=section["seconds"], rounds=section["rounds"], block_ms=section["block_ms"])
    folder = work.upstream["build"].folder
    parts = []
    for batch in batches:
        feeds = _feeds(data, batch)
        sessions = {engine.name: backend.load(engine, folder) for engine in engines.engines}
        try:
            samplers = {name: session.sampler(feeds) for name, session in sessions.items()}
            parts.append(latency.sample(samplers, shape=_shape(batch), plan=plan, seed=work.seed, progress=work.progress))
        finally:
            for session in sessions.values():
                session.close()
    return Samples.concatenate(parts)


def _layer_times(backend: Backend, engines: Engines, data: Data, batches: list[int], work: Work) -> list[LayerTime]:
    passes = work.section("measure")["layer_passes"]
    folder = work.upstream["build"].folder
    times = []
    for engine in engines.engines if passes else []:
        if engine.repeat > 1:
            continue
        for batch in batches:
            work.progress(f"profile {engine.name}", 0, text=_shape(batch))
            found = backend.profile(engine, folder, _feeds(data, batch), passes)
            times += [
                LayerTime(arm=engine.name, shape=_shape(batch), layer=layer, onnx_nodes=[layer], passes_ms=means)
                for layer, means in found.items()
            ]
    return times


def _engine_quality(backend: Backend, engines: Engines, data: Data, work: Work) -> dict[str, list[Quality]]:
    """Each first build evaluated on the held-out split by its own outputs."""
    from pipeline.stages.evaluation import evaluate, run_over

    folder = work.upstream["build"].folder
    batch = work.record("export", OnnxArms).batch["max"]
    results = {}
    for engine in engines.engines:
        if engine.repeat > 1:
            continue
        work.progress(f"evaluate {engine.name}", 0)
        session = backend.load(engine, folder)
        try:
            results[engine.name] = evaluate(
                lambda split, run=session.run: run_over(split, run, batch),
                data,
                who=engine.name,
                backend=backend.name,
                work=work,
                splits=("test",),
            )
        finally:
            session.close()
    return results


def _carried(work: Work) -> dict[str, list[Quality]]:
    """What training measured of the torch models, for comparison; their predictions stay with `train`."""
    if "train" not in work.upstream:
        return {}
    checkpoint = work.record("train", Checkpoint)
    return {"torch:dense": checkpoint.dense_quality, "torch:masked": checkpoint.masked_quality}


def _sizes(engines: Engines, work: Work) -> list[Size]:
    """What each arm takes on disk and what its weights would take, by way of holding them."""
    from pipeline.graph import storage

    arms = {arm.arm: arm for arm in work.record("export", OnnxArms).arms}
    frozen = work.record("freeze", FrozenModel) if "freeze" in work.upstream else None
    sizes = []
    for engine in engines.engines:
        if engine.repeat > 1:
            continue
        arm = arms[engine.onnx_arm]
        state = getattr(frozen, engine.onnx_arm, None)
        sizes += storage.arm_sizes(
            engine.name,
            arm.check.layers,
            model=[work.file("export", arm.model)],
            plan=work.file("build", engine.plan),
            state_dict=work.file("freeze", state) if state else None,
        )
    return sizes


def _device(engines: Engines) -> str:
    return engines.environment.get("gpu") or engines.environment.get("cpu") or "unknown"
