"""Models that others made: the onnx package's own test models, and those that packages ship. None of them is copied here."""

from __future__ import annotations

import time
from importlib import metadata
from pathlib import Path
from random import Random

import graph_zoo as zoo
import numpy as np
import onnx
import pytest
from onnx import numpy_helper as nh

from pipeline import graph
from pipeline.errors import InputError
from pipeline.records.check import Target
from pipeline.records.prune import Action

pytestmark = pytest.mark.soak

PACKAGES = ("silero-vad", "magika", "rapidocr-onnxruntime", "nudenet")
"""Packages of a few megabytes that ship ONNX files; `pip install --no-deps NAME` brings one."""
TARGET = Target(sm="8.6", tensorrt="10.13", typing="strong")


def shipped(package: str) -> list[Path]:
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"the package {package} is not installed")
    return [Path(str(file.locate())) for file in files if file.suffix == ".onnx"]


def test_the_onnx_package_s_models_are_read():
    paths = sorted(Path(onnx.__file__).parent.rglob("*.onnx"))
    assert len(paths) > 100
    layers = 0
    for path in paths:
        report = graph.check(path, TARGET)
        layers += report.totals.layers
        agree(path, report)
    assert layers > 100


def test_the_onnx_package_s_generated_cases_are_read(tmp_path):
    from onnx.backend.test.case import node as cases

    with np.errstate(all="ignore"):
        found = cases.collect_testcases(None)
    assert len(found) > 1000
    layers = 0
    for at, case in enumerate(found):
        if case.model is None:
            continue
        path = tmp_path / f"{at}.onnx"
        path.write_bytes(case.model.SerializeToString())
        layers += graph.check(path, TARGET).totals.layers
        path.unlink()
    assert layers > 50


@pytest.mark.parametrize("package", PACKAGES)
def test_models_that_packages_ship_are_read_and_pruned(package, tmp_path):
    paths = shipped(package)
    assert paths
    for path in paths:
        report = graph.check(path, TARGET)
        assert report.totals.layers > 0
        agree(path, report)
        out = tmp_path / path.name
        done = graph.prune(path, out)
        assert out.stat().st_size == path.stat().st_size
        after = {(layer.graph, layer.node, layer.operand): layer for layer in graph.check(out, TARGET).layers}
        for layer in done.layers:
            if layer.action is not Action.REFUSED:
                assert after[layer.graph, layer.node, layer.operand].two_four is True
        assert any(layer.action is Action.PRUNED for layer in done.layers)
        onnx.load(out)


def test_mutated_models_are_refused_or_read(tmp_path):
    """Bytes changed, left out and put in: an InputError or a report, within a second each."""
    paths = [path for path in sorted(Path(onnx.__file__).parent.rglob("*.onnx")) if path.stat().st_size < 20_000]
    paths_of_zoo = [
        zoo.build(zoo.OPS["conv2d"], way, zoo.weight_of(zoo.OPS["conv2d"], "right", np.dtype(np.float32), 1))[0] for way in WAYS
    ]
    seeds = [path.read_bytes() for path in paths] + [model.SerializeToString() for model in paths_of_zoo] * 4
    random = Random(7)
    for _ in range(4000):
        path = tmp_path / "m.onnx"
        path.write_bytes(mutated(random, random.choice(seeds)))
        before = time.process_time()
        try:
            graph.check(path, TARGET)
            graph.prune(path, tmp_path / "o.onnx")
        except InputError:
            pass
        assert time.process_time() - before < 3


WAYS = [way for name, way in zoo.PATHS.items() if name not in ("unsqueeze", "flatten")]


def mutated(random: Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(random.randint(1, 6)):
        at, kind = random.randrange(len(out) or 1), random.random()
        if kind < 0.6 and out:
            out[at] = random.randrange(256)
        elif kind < 0.8:
            del out[at : at + random.randint(1, 8)]
        else:
            out[at:at] = random.randbytes(random.randint(1, 5))
    return bytes(out)


def agree(path: Path, report) -> None:
    """Weights that lie in the main graph as the operator reads them are judged by brute force too."""
    tensors = {tensor.name: tensor for tensor in onnx.load(path).graph.initializer}
    for layer in report.layers:
        if layer.path or layer.graph or layer.weight not in tensors or layer.op not in ("Conv", "MatMul", "Gemm"):
            continue
        array = nh.to_array(tensors[layer.weight])
        if array.size < 200_000:
            truth = zoo.brute_force(array, layer.axis)
            assert (layer.two_four, layer.groups_violating) == (truth.two_four, truth.violating)
