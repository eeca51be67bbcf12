"""Each stage's REVISION is guarded: the same inputs give the output on record here, or the revision was bumped.

When a test fails because the output was meant to change: bump `REVISION` in the stage's module, then set the digest that the
failure shows. Old outputs in people's stores are then made anew instead of being taken for current ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest

from pipeline.records.evidence import Evidence, read_evidence
from pipeline.records.run import Run
from pipeline.run import run
from pipeline.run.chain import ORDER, stage_module

RECIPE = Path(__file__).resolve().parents[1] / "data" / "revisions" / "exact.yaml"

GOLDEN: dict[str, tuple[int, str]] = {
    "train": (1, "175fb2c0474f6dd3"),
    "freeze": (1, "3773ef84c6dbbf1a"),
    "export": (2, "2a89cce984b4413f"),
    "build": (1, "321a24d54451697e"),
    "tactics": (1, "513093fc07d2c173"),
    "measure": (2, "b20d50f712d27c75"),
    "gate": (2, "a26ce03ca81be695"),
}


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, Path]:
    workspace = tmp_path_factory.mktemp("exact")
    evidence = run(RECIPE, workspace=workspace)
    return read_evidence(evidence.folder), workspace / "engines" / "exact"


def folder_of(run_record: Run, store: Path, stage: str) -> Path:
    return store / next(status.folder for status in run_record.stages if status.stage == stage)


def facts_of_train(evidence: Evidence, folder: Path) -> Any:
    record = evidence.train
    layers = [(item.layer.id, item.masked, item.rule, item.kept_magnitude, item.proof) for item in record.layers]
    scores = {path.name: scores_of(path) for path in sorted((folder / "predictions").glob("*.npz"))}
    return [record.dense.sha256, record.weights.sha256, record.masks.sha256, record.mask_digest, layers, scores]


def facts_of_freeze(evidence: Evidence, folder: Path) -> Any:
    record = evidence.freeze
    layers = [(item.layer.id, item.proof, item.zero_fraction) for item in record.layers]
    return [record.sparse.sha256, record.dense.sha256, record.weights_digest, record.max_difference, layers]


def facts_of_export(evidence: Evidence, folder: Path) -> Any:
    record = evidence.export
    layers = [(item.layer.id, item.layer.onnx_nodes, item.proof) for item in record.layers]
    graphs = [graph_of(folder / arm.model.path) for arm in record.arms]
    parity = [(item.arm, item.batch, item.max_abs, item.agreement, item.passed) for item in record.parity]
    return [graphs, parity, layers, record.inputs, record.batch]


def facts_of_build(evidence: Evidence, folder: Path) -> Any:
    record = evidence.build
    exported = {arm.arm: arm.model.sha256 for arm in evidence.export.arms}
    engines = [
        (item.name, item.onnx_arm, item.plan.sha256 == exported[item.onnx_arm], item.options["sparse_weights"]) for item in record.engines
    ]
    return [engines, record.controls, record.profiles]


def facts_of_tactics(evidence: Evidence, folder: Path) -> Any:
    return [evidence.tactics.applicable, evidence.tactics.why_not, evidence.tactics.builds]


def facts_of_measure(evidence: Evidence, folder: Path) -> Any:
    record = evidence.measure
    timed = sorted((item.arm, item.shape, item.metric, str(item.inputs)) for item in record.timings)
    ratios = sorted({(item.arm, item.over, item.control) for item in record.ratios})
    sizes = [(item.arm, item.name, item.bytes) for item in record.sizes if item.name not in ("archive", "file", "plan")]
    scores = {path.name: scores_of(path) for path in sorted((folder / "predictions").glob("*.npz"))}
    return [timed, ratios, sizes, scores, sorted(record.quality)]


def facts_of_gate(evidence: Evidence, folder: Path) -> Any:
    record = evidence.gate
    rules = [(item.id, item.outcome, item.value, item.low, item.high, item.n) for item in record.rules]
    ladder = [(item.of, {step: rung for step, rung in item.steps.items() if "faster" not in step}) for item in record.ladder]
    return [rules, ladder]


def scores_of(path: Path) -> str:
    """Digest of the columns of a predictions file: the zip around them holds times."""
    with np.load(path, allow_pickle=False) as columns:
        return hashlib.sha256(b"".join(columns[name].tobytes() for name in sorted(columns.files))).hexdigest()


def graph_of(path: Path) -> Any:
    """Nodes and weights of a file, without the exporter's notes."""
    graph = onnx.load(path).graph
    weights = {tensor.name: hashlib.sha256(onnx.numpy_helper.to_array(tensor).tobytes()).hexdigest() for tensor in graph.initializer}
    return [[node.op_type, list(node.input), list(node.output)] for node in graph.node], weights


FACTS: dict[str, Callable[[Evidence, Path], Any]] = {
    "train": facts_of_train,
    "freeze": facts_of_freeze,
    "export": facts_of_export,
    "build": facts_of_build,
    "tactics": facts_of_tactics,
    "measure": facts_of_measure,
    "gate": facts_of_gate,
}


@pytest.mark.parametrize("stage", ORDER)
def test_the_output_is_that_of_the_revision(exact, stage):
    evidence, store = exact
    facts = FACTS[stage](evidence, folder_of(evidence.run, store, stage))
    digest = hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()[:16]
    assert (stage_module(stage).REVISION, digest) == GOLDEN[stage]
