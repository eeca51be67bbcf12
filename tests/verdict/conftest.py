"""A crafted run on the gate's side of the chain: samples and predictions on disk, records in memory."""

from __future__ import annotations

import shutil

import msgspec
import numpy as np
import pytest

from pipeline.latency import Samples, Sampling, ratios, timings
from pipeline.quality import Predictions, summarise
from pipeline.records import io
from pipeline.records.artifact import Artifact
from pipeline.records.engines import Engine, Engines
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Conditions, Measurement, Size
from pipeline.records.run import Provenance, Run

SHAPE = "batch=8"
DIGEST = "0" * 64


def made_samples(medians, *, rounds=200, count=10, cv=0.01, seed=0, planned=None, settled=None, shape=SHAPE, metrics=("host_latency",)):
    """Interleaved samples of arms with the given median ms; what is common to a round is in all arms."""
    rng = np.random.default_rng(seed)
    arms = tuple(medians)
    common = np.exp(0.02 * rng.standard_normal((rounds, 1, 1)))
    level = np.array(list(medians.values()))[None, :, None]
    ms = common * level * np.exp(cv * rng.standard_normal((rounds, len(arms), count)))
    round_, arm, _ = np.meshgrid(np.arange(rounds), np.arange(len(arms)), np.arange(count), indexing="ij")
    total = ms.size
    return Samples(
        arms=arms,
        shapes=(shape,),
        metrics=metrics,
        arm=np.tile(arm.ravel(), len(metrics)).astype(np.int16),
        shape=np.zeros(total * len(metrics), np.int16),
        metric=np.repeat(np.arange(len(metrics)), total).astype(np.int16),
        round=np.tile(round_.ravel(), len(metrics)).astype(np.int32),
        block=np.tile((round_ * len(arms) + arm).ravel(), len(metrics)).astype(np.int32),
        start_ns=np.zeros(total * len(metrics), np.int64),
        ms=np.concatenate([ms.ravel() * (1 - 0.1 * at) for at in range(len(metrics))]),
        sampling={
            shape: Sampling(planned_rounds=planned or rounds, rounds=rounds, settled=settled or dict.fromkeys(arms, True), stopped="rounds")
        },
    )


def made_predictions(n=500, wrong=(), classes=10, metric="accuracy"):
    """Predictions that are right except on the given samples."""
    scores = np.ones(n)
    scores[list(wrong)] = 0.0
    labels = np.arange(n) % classes
    answers = np.where(scores > 0, labels, (labels + 1) % classes)
    return Predictions(heads={"label": metric}, scores={"label": scores}, slices={"class": labels.astype(str)}, answers={"label": answers})


class Workbench:
    """Writes a run's files and gives its evidence; every piece can be replaced."""

    def __init__(self, folder):
        self.folder = folder

    def evidence(self, *, samples=None, predictions=None, backend="onnxruntime", engines=None, controls=(), conditions=None, **measured):
        """Evidence of a run whose measure stage left these samples and predictions (by arm)."""
        measure = self.folder / "measure"
        measure.mkdir(parents=True, exist_ok=True)
        artifact, times, found_ratios = None, [], []
        if samples is not None:
            samples.save(measure / "samples.npz")
            artifact = Artifact.of(measure / "samples.npz", relative_to=measure)
            inputs = {shape: {"x": [int(shape.removeprefix("batch=")), 4]} for shape in samples.shapes}
            times = timings(samples, inputs, 0.05)
            found_ratios = ratios(samples, [("sparse", "dense")], set(), 0.05)
        quality = {}
        for arm, predicted in (predictions or {}).items():
            path = measure / f"{arm.replace(':', '-')}.npz"
            predicted.save(path)
            quality[arm] = [summarise(predicted, split="test", backend=backend, artifact=Artifact.of(path, relative_to=measure))]
        sizes = [Size(arm="sparse", name="file", bytes=900, question="?"), Size(arm="dense", name="file", bytes=1000, question="?")]
        record = Measurement(
            samples=artifact,
            timings=times,
            ratios=found_ratios,
            quality=quality,
            sizes=sizes,
            conditions=conditions or Conditions(backend=backend, device="cpu", settings={"threads": "1"}),
        )
        record = msgspec.structs.replace(record, **measured)
        arms = samples.arms if samples is not None else ("sparse", "dense")
        plan = Artifact(path="p", sha256=DIGEST, size_bytes=1)
        built = engines or [Engine(arm=arm, onnx_arm=arm, plan=plan) for arm in arms if "@" not in arm and "#" not in arm]
        build = Engines(backend=backend, sparse_kernels=False, engines=built, controls=[list(pair) for pair in controls])
        return Evidence(folder=self.folder, build=build, measure=record)

    def run(self, evidence, rules, alpha=0.05):
        """Write the records of this evidence as a run's folder `logs/crafted/1` in the workspace."""
        folder = self.folder.parent / "workspace" / "logs" / "crafted" / "1"
        shutil.copytree(self.folder / "measure", folder / "measure", dirs_exist_ok=True)
        run = Run(
            id="1",
            recipe="crafted",
            recipe_path="crafted.yaml",
            recipe_text="",
            recipe_digest=DIGEST,
            sections={"gate": {"alpha": alpha, "rules": rules}},
            started="2026-01-01T00:00:00Z",
            provenance=Provenance(sparsegate="0", python="3", os="o", cpu="c", cores=1),
        )
        io.write(folder / "run.json", run)
        io.write(folder / "records" / "build.json", evidence.build)
        io.write(folder / "records" / "measure.json", evidence.measure)
        return folder


@pytest.fixture
def bench(tmp_path):
    return Workbench(tmp_path / "store")


@pytest.fixture(name="made_samples")
def _made_samples():
    return made_samples


@pytest.fixture(name="made_predictions")
def _made_predictions():
    return made_predictions
