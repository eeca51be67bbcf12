"""The bound of a run counts the profiled share of the pruned layers, and nothing on a backend without sparse kernels."""

from __future__ import annotations

import crafted_run as c
import pytest
from msgspec.structs import replace

from pipeline.verdict.bound import bounds


def times(arm, **layers):
    items = {"body": c.BODY, "tail": c.TAIL, "stem": c.STEM}
    return [c.layer_time(arm, items[name], ms, ms, ms) for name, ms in layers.items()]


def run(*measured):
    return c.evidence(measure=c.measurement(layers=list(measured)))


def test_the_twins_pruned_layers_are_the_share():
    (bound,) = bounds(run(*times("twin", body=6.0, stem=14.0), *times("dense", body=1.0)))
    assert (bound.total_ms, bound.eligible_ms, bound.unmatched_ms) == (20.0, 6.0, 0.0)
    assert (bound.at_most, bound.ceiling) == (pytest.approx(20 / 17), pytest.approx(20 / 14))
    assert bound.source == "the profile of the twin arm at batch=32"


def test_layers_whose_nodes_are_not_known_count_as_pruned():
    unknown = replace(times("dense", stem=4.0)[0], layer="mystery", onnx_nodes=[])
    (bound,) = bounds(run(*times("dense", stem=6.0), unknown))
    assert (bound.eligible_ms, bound.unmatched_ms) == (4.0, 4.0)


def test_a_reformat_belongs_to_its_layer():
    body = times("dense", body=6.0, stem=1.0)
    reformat = replace(body[0], layer=f"Reformatting CopyNode for Input Tensor 0 to {body[0].layer}", onnx_nodes=[])
    twin = c.tactic_report(c.build("sparse"), c.build("dense", number=1))
    (bound,) = bounds(replace(run(*body, reformat), tactics=twin))
    assert (bound.eligible_ms, bound.unmatched_ms) == (12.0, 0.0)


def test_no_bound_without_sparse_kernels_or_a_profile():
    assert bounds(replace(c.on_onnxruntime(), measure=run(*times("twin", body=1.0)).measure)) == []
    assert bounds(run()) == []
    assert bounds(c.evidence(measure=None)) == []
