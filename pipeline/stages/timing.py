"""The part of `measure` that runs engines against the clock: interleaved latency, and layer times in passes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.records.engines import Engine, Engines
from pipeline.records.measurement import Conditions, Energy, EngineParity, LayerTime
from pipeline.stages.base import Work
from pipeline.stages.feeds import feeds

if TYPE_CHECKING:
    from pipeline.builders.base import Backend, Session, Watch
    from pipeline.gpu_watch import Observation
    from pipeline.latency import Sampler, Samples
    from pipeline.latency.energy_pass import Metered
    from pipeline.sources.base import Data

PAIRS = (("sparse", "dense"), ("sparse", "twin"))
"""What the release gains, and the effect of the flag."""
CONTROL = "dense"
"""The arm that is loaded a second time: two sessions of one plan show what the measurement itself can tell apart."""


class Timed(NamedTuple):
    """What came of running the engines against the clock."""

    samples: Samples
    observed: Observation
    energy: list[Energy]


def shape_id(batch: int) -> str:
    """Name of a measured shape."""
    return f"batch={batch}"


def pairs(engines: Engines) -> list[tuple[str, str]]:
    """The comparisons that the built arms allow, the control among them."""
    from pipeline import latency

    names = {engine.name for engine in engines.engines}
    return [pair for pair in PAIRS if set(pair) <= names] + [(latency.control_of(arm), arm) for arm in _controlled(engines)]


def controls(engines: Engines) -> set[tuple[str, str]]:
    """Pairs that run the same kernels."""
    from pipeline import latency

    return {(pair[0], pair[1]) for pair in engines.controls} | {(latency.control_of(arm), arm) for arm in _controlled(engines)}


def _controlled(engines: Engines) -> list[str]:
    """The dense arm, or the first one where there is no dense arm."""
    names = [engine.name for engine in engines.engines]
    return [CONTROL] if CONTROL in names else names[:1]


def sample(
    backend: Backend, engines: Engines, data: Data, batches: Sequence[int], work: Work, decided: Callable[[Samples], bool] | None
) -> Timed:
    """Time all arms at every batch size, each arm with a session and buffers of its own, under watch; then their energy."""
    from pipeline import latency
    from pipeline.latency import Plan, Samples

    section = work.section("measure")
    plan = Plan(**{key: section[key] for key in ("seconds", "rounds", "block_ms", "warmup_seconds")})
    parts, energy, unmetered = [], [], []
    first_builds = [engine.name for engine in engines.engines if engine.repeat == 1]
    watch = backend.watch()
    try:
        for batch in batches:
            with _sessions(backend, engines, work) as sessions:
                samplers = {name: session.sampler(feeds(data.test, batch)) for name, session in sessions.items()}
                parts.append(
                    latency.sample(samplers, shape=shape_id(batch), plan=plan, seed=work.seed, decided=decided, progress=work.progress)
                )
                metered = _energy({name: samplers[name] for name in first_builds}, watch, shape_id(batch), work)
                energy += metered.energy
                unmetered += [metered.unobserved] if metered.unobserved else []
    finally:
        observed = watch.stop()
    if energy and any(look.others for look in observed.looks):
        energy, unmetered = [], ["energy: other processes used the GPU, and its counter is of all of them"]
    unobserved = list(dict.fromkeys([*observed.unobserved, *unmetered]))
    return Timed(Samples.concat(parts), msgspec.structs.replace(observed, unobserved=unobserved), energy)


def _energy(samplers: Mapping[str, Sampler], watch: Watch, shape: str, work: Work) -> Metered:
    """A pass apart, after the samples: see `latency.energy_pass`."""
    from pipeline import latency

    seconds = work.section("measure")["energy_seconds"]
    if seconds is None:
        judged = any(rule["kind"] == "energy" for rule in work.section("gate")["rules"])
        seconds = latency.EnergyPlan().seconds if judged else 0.0
    return latency.energy(
        samplers,
        watch.energy_mj,
        shape=shape,
        how=watch.energy_source,
        plan=latency.EnergyPlan(seconds=seconds),
        seed=work.seed,
        alpha=work.section("gate")["alpha"],
        progress=work.progress,
    )


def conditions(backend: Backend, engines: Engines, samples: Samples, observed: Observation, parity: Sequence[EngineParity]) -> Conditions:
    """What the times were taken under, what was seen of the machine meanwhile, and whether the engines compute the right thing."""
    from pipeline import latency
    from pipeline.builders.parity import failures

    return Conditions(
        backend=backend.name,
        device=engines.environment.get("gpu") or engines.environment.get("cpu") or "unknown",
        settings=backend.settings(),
        warnings=[*observed.warnings, *failures(parity)],
        unobserved=observed.unobserved,
        readings=latency.readings(samples, observed.looks),
        facts=observed.facts,
        simulated=next((engine.simulated for engine in engines.engines if engine.simulated), None),
    )


@contextmanager
def _sessions(backend: Backend, engines: Engines, work: Work) -> Iterator[Mapping[str, Session]]:
    """Every engine loaded, and the control a second time."""
    from pipeline import latency

    folder = work.upstream["build"].folder
    by_name = {engine.name: engine for engine in engines.engines}
    wanted = {**by_name, **{latency.control_of(arm): by_name[arm] for arm in _controlled(engines)}}
    loaded: dict[str, Session] = {}
    try:
        for name, engine in wanted.items():
            loaded[name] = backend.load(engine, folder)
        yield loaded
    finally:
        for session in loaded.values():
            session.close()


def layer_times(backend: Backend, engines: Sequence[Engine], data: Data, batches: Sequence[int], work: Work) -> list[LayerTime]:
    """Every engine layer's mean per profiling pass, at every batch size; in each pass every engine has its turn, so that drift hits all."""
    passes = work.section("measure")["layer_passes"]
    folder = work.upstream["build"].folder
    times: dict[tuple[str, str, str], list[float]] = {}
    for batch in batches:
        inputs = feeds(data.test, batch)
        for index in range(passes):
            work.progress(f"profile {shape_id(batch)}", index, passes)
            for engine in _rotated(engines, index):
                for layer, means in backend.profile(engine, folder, inputs, 1).items():
                    times.setdefault((engine.name, shape_id(batch), layer), []).extend(means)
    nodes = {
        engine.name: backend.onnx_nodes(engine, folder, [layer for arm, _, layer in times if arm == engine.name]) for engine in engines
    }
    return [
        LayerTime(arm=arm, shape=shape, layer=layer, onnx_nodes=nodes[arm].get(layer, []), passes_ms=means)
        for (arm, shape, layer), means in times.items()
    ]


def _rotated(engines: Sequence[Engine], by: int) -> Sequence[Engine]:
    start = by % len(engines) if engines else 0
    return [*engines[start:], *engines[:start]]
