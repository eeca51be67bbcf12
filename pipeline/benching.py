"""`bench`: interleaved latency of ONNX files or plans, without a recipe. Joins builders and latency.

As a program (`python -m pipeline.benching MODEL ...`) it times blocks of one model and prints the times: a process of its own for
`bench --processes`, also in another environment or container.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.errors import InputError, StageError
from pipeline.progress import Progress, silent
from pipeline.records.artifact import Artifact
from pipeline.records.engines import Engine
from pipeline.records.measurement import Conditions, Measurement

if TYPE_CHECKING:
    import numpy as np

    from pipeline.builders.base import Backend, Session
    from pipeline.latency import Plan, Sampler, Samples

    Feeds = dict[str, np.ndarray]

SAVE_BY_NAME = "save inputs by name with numpy.savez, samples along the first axis"

WARM_UP = 20
"""Inferences of a process before those that it reports."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to time, on what."""

    models: dict[str, Path]
    """File by arm name; ratios are over the first."""
    backend: str = "onnxruntime"
    options: dict[str, int | str] = {}
    """Of the backend, as the recipe's `build` section."""
    batches: tuple[int, ...] = (1,)
    inputs: Path | None = None
    """npz of input arrays; random values where absent."""
    processes: bool = False
    """Every arm in processes of its own, started anew in every round."""
    commands: dict[str, list[str]] = {}
    """Further arms, each a command as `latency.process` describes."""
    seed: int = 0


def named(files: Sequence[Path]) -> dict[str, Path]:
    """Arm names from file names; a second file of one name gets its number."""
    names: dict[str, Path] = {}
    for file in files:
        stem = re.sub(r"[^A-Za-z0-9._-]", "_", file.stem) or "model"
        name, number = stem, 2
        while name in names:
            name, number = f"{stem}-{number}", number + 1
        names[name] = file
    return names


def bench(job: Job, plan: Plan, alpha: float, folder: Path | None = None, progress: Progress = silent) -> Measurement:
    """Time the models of a job against each other, the first one twice.

    Args:
        job: What to time.
        plan: How long and how finely.
        alpha: Error probability of each bound.
        folder: Where `samples.npz` is kept; not at all when absent.
        progress: Told how far it is.

    Raises:
        InputError: a file that is no model, inputs that do not fit, an unknown backend.
    """
    from pipeline import builders, latency

    backend = builders.backend(job.backend, job.options)
    reference = next(iter(job.models))
    again = latency.control_of(reference)
    parts, shapes = [], {}
    watch = backend.watch()
    try:
        with tempfile.TemporaryDirectory(prefix="sparsegate-bench-") as scratch:
            engines = {} if job.processes else {name: _engine(backend, name, file, Path(scratch)) for name, file in job.models.items()}
            for batch in job.batches:
                shape = f"batch={batch}"
                feeds = {name: _feeds(file, batch, job) for name, file in job.models.items()}
                shapes[shape] = {name: list(array.shape) for name, array in feeds[reference].items()}
                with ExitStack() as stack:
                    arms = _commands(job, batch, stack) if job.processes else _loaded(backend, engines, feeds, Path(scratch), stack)
                    parts.append(latency.sample(arms, shape=shape, plan=plan, seed=job.seed, progress=progress))
    finally:  # what it started may be on another machine
        seen = watch.stop()
    samples = latency.Samples.concat(parts)
    pairs = [(name, reference) for name in [*job.models, *job.commands] if name != reference]
    return Measurement(
        samples=_kept(samples, folder),
        timings=latency.timings(samples, shapes, alpha),
        ratios=latency.ratios(samples, [*pairs, (again, reference)], {(again, reference)}, alpha),
        conditions=Conditions(
            backend=backend.name,
            device=_device(backend),
            settings=_settings(backend, job),
            unobserved=seen.unobserved,
            warnings=seen.warnings,
            readings=latency.readings(samples, seen.looks),
            facts=seen.facts,
        ),
        stopped=samples.stopped,
    )


def _settings(backend: Backend, job: Job) -> dict[str, str]:
    inputs = str(job.inputs) if job.inputs else "random"
    return {**backend.settings(), "inputs": inputs, "level": "process" if job.processes else "block"}


def _device(backend: Backend) -> str:
    facts = backend.describe()
    return facts.get("gpu") or facts.get("cpu") or "unknown"


def _kept(samples: Samples, folder: Path | None) -> Artifact | None:
    if folder is None:
        return None
    samples.save(folder / "samples.npz")
    return Artifact.of(folder / "samples.npz", relative_to=folder)


def _engine(backend: Backend, name: str, file: Path, scratch: Path) -> Engine:
    """An engine of an ONNX file, or the plan that the file is."""
    from pipeline.builders.base import ArmRequest

    if not file.is_file():
        raise InputError("no such file", where=str(file), hint="give an ONNX file or a plan")
    if file.suffix.lower() != ".onnx":
        target = scratch / name / file.name
        target.parent.mkdir()
        target.symlink_to(file.resolve())
        return Engine(arm=name, onnx_arm=name, plan=Artifact.of(target, relative_to=scratch / name))
    request = ArmRequest(arm=name, repeat=1, onnx=file, onnx_arm=name, sparse_weights=True, precision="fp32", profiles=[])
    try:
        return backend.build(request, scratch / name)
    except StageError as error:  # the file is all that the user gave
        raise InputError(f"{backend.name} cannot build it: {error.what}", where=str(file), hint=error.hint) from None


def _loaded(
    backend: Backend, engines: Mapping[str, Engine], feeds: Mapping[str, Feeds], scratch: Path, stack: ExitStack
) -> dict[str, Sampler]:
    """Every engine with a session of its own, the first one with two."""
    from pipeline import latency

    reference = next(iter(engines))
    wanted = {**engines, latency.control_of(reference): engines[reference]}
    arms: dict[str, Sampler] = {}
    for name, engine in wanted.items():
        session: Session = backend.load(engine, scratch / engine.arm)
        stack.callback(session.close)
        arms[name] = session.sampler(feeds[engine.arm])
    return arms


def _commands(job: Job, batch: int, stack: ExitStack) -> dict[str, Sampler]:
    """Every model timed by this module in a process of its own, and the arms that are commands already."""
    from pipeline import latency

    def command(file: Path) -> list[str]:
        words = [sys.executable, "-m", "pipeline.benching", str(file), "--batch", str(batch), "--backend", job.backend]
        words += ["--inputs", str(job.inputs)] if job.inputs else []
        return words + [word for name, value in job.options.items() for word in ("--option", f"{name}={value}")]

    reference = next(iter(job.models))
    own = {name: command(file) for name, file in job.models.items()}
    every = {**own, latency.control_of(reference): own[reference], **job.commands}
    arms: dict[str, Sampler] = {}
    for name, words in every.items():
        sampler = latency.command_sampler(words)
        stack.callback(sampler.close)
        arms[name] = sampler
    return arms


def _feeds(file: Path, batch: int, job: Job) -> Feeds:
    """Inputs of a model: from the job's file, or random (never zeros, which some kernels run faster)."""
    import numpy as np

    from pipeline.builders.feeds import random_feeds
    from pipeline.records import npz

    if job.inputs is not None:
        given = npz.arrays(job.inputs, hint=SAVE_BY_NAME)
        flat = [name for name, array in given.items() if array.ndim == 0 or len(array) == 0]
        if flat:
            raise InputError(f"the array {flat[0]} holds no samples along a first axis", where=str(job.inputs), hint=SAVE_BY_NAME)
        return {name: np.take(array, np.arange(batch) % len(array), axis=0) for name, array in given.items()}
    if file.suffix.lower() != ".onnx":
        raise InputError("a plan does not say its inputs' shapes", where=str(file), hint="give them with --inputs FILE.npz")
    return random_feeds(file, batch, job.seed)


def serve(file: Path, job: Job, counts: Iterable[int]) -> Iterator[Mapping[str, np.ndarray]]:
    """Times of one block after another of one model, in this process."""
    from pipeline import builders

    backend = builders.backend(job.backend, job.options)
    with tempfile.TemporaryDirectory(prefix="sparsegate-bench-") as scratch:
        engine = _engine(backend, "model", file, Path(scratch))
        session = backend.load(engine, Path(scratch) / "model")
        try:
            sampler = session.sampler(_feeds(file, job.batches[0], job))
            sampler.block(WARM_UP)
            for count in counts:
                yield sampler.block(count)
        finally:
            session.close()


def main() -> None:
    """Time one block of `--count` inferences, or one for every number read from standard input; print a line of JSON for each."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m pipeline.benching", description=main.__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--backend", default="onnxruntime")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--count", type=int)
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    args = parser.parse_args()
    options = {name: int(value) if value.isdecimal() else value for name, _, value in (text.partition("=") for text in args.option)}
    job = Job(models={"model": args.model}, backend=args.backend, options=options, batches=(args.batch,), inputs=args.inputs)
    counts = map(int, sys.stdin) if args.count is None else [args.count]
    for times in serve(args.model, job, counts):
        sys.stdout.write(msgspec.json.encode({metric: values.tolist() for metric, values in times.items()}).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
