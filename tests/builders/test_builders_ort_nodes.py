"""ONNX Runtime's kernels are traced back to the ONNX nodes that they compute."""

from __future__ import annotations

import numpy as np
import pytest
from builder_cases import request

from pipeline.builders import backend
from pipeline.builders.ort_nodes import onnx_nodes


@pytest.fixture(scope="module")
def nodes(exported, tmp_path_factory):
    """ONNX nodes by profiled kernel, of the quickstart's network."""
    folder = tmp_path_factory.mktemp("ort")
    made = backend("onnxruntime", {})
    engine = made.build(request(exported.folder / "sparse.onnx", profiles=[]), folder)
    times = made.profile(engine, folder, {"x": np.random.default_rng(0).random((4, 1, 8, 8), np.float32)}, 1)
    return made.onnx_nodes(engine, folder, list(times))


def test_every_weighted_layer_of_the_quickstart_is_timed_by_name(exported, nodes):
    timed = {node for names in nodes.values() for node in names}
    wanted = {node for layer in exported.evidence.export.layers for node in layer.layer.onnx_nodes}
    assert wanted
    assert wanted <= timed


def test_no_node_belongs_to_two_kernels(nodes):
    named = [node for names in nodes.values() for node in names]
    assert len(named) == len(set(named)) > 5


def test_a_kernel_that_the_optimiser_added_belongs_to_no_node(exported):
    plan = exported.folder / "sparse.onnx"
    assert onnx_nodes(plan, ["ReorderOutput"]) == {"ReorderOutput": []}
