"""ONNX Runtime's kernels are traced back to the ONNX nodes that they compute."""

from __future__ import annotations

from pipeline.builders.ort_nodes import onnx_nodes


def test_every_weighted_layer_of_the_quickstart_is_timed_by_name(quickstart_run):
    evidence = quickstart_run.evidence
    timed = {node for layer in evidence.measure.layers if layer.arm == "sparse" for node in layer.onnx_nodes}
    wanted = {node for layer in evidence.export.layers for node in layer.layer.onnx_nodes}
    assert wanted
    assert wanted <= timed


def test_no_node_belongs_to_two_kernels(quickstart_run):
    evidence = quickstart_run.evidence
    nodes = [node for layer in evidence.measure.layers if layer.arm == "sparse" for node in layer.onnx_nodes]
    assert len(nodes) == len(set(nodes))


def test_a_kernel_that_the_optimiser_added_belongs_to_no_node(quickstart_run):
    plan = quickstart_run.stage_folder("export") / "sparse.onnx"
    assert onnx_nodes(plan, ["ReorderOutput"]) == {"ReorderOutput": []}
