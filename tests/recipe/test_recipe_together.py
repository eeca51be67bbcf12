from __future__ import annotations

import pytest

from pipeline.recipe import load_recipe
from pipeline.recipe.schema import Build

MINIMAL = "name: small\nmodel: {python: 'm.py:build'}\ndata: {digits: true}\n"


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("measure: {batches: [8, 65]}\n", "4:24", "batch 65 is outside export.batch (1 to 64)"),
        ("gate: {rules: [{kind: latency, at_most: 1, batch: 8}]}\n", "4:51", "batch 8 is not measured (measured: 32)"),
        ("gate: {rules: [{kind: quality, at_least: 0.9, head: lable}]}\n", "4:53", "did you mean 'label'?"),
        ("gate: {rules: [{kind: latency, at_most: 1, over: dnse}]}\n", "4:50", "did you mean 'dense'?"),
        ("gate: {rules: [{kind: latency, at_most: 1, arm: 'sparse#2'}]}\n", "4:49", "build.repeats is 1"),
        ("gate: {rules: [{kind: latency, at_most: 1, arm: baseline}]}\n", "4:49", "no arm is called 'baseline'"),
        ("gate: {rules: [{kind: latency, at_most: 1, over: 'sparse#1'}]}\n", "4:50", "no arm is called 'sparse#1'"),
        ("build: {repeats: 3}\ngate: {rules: [{kind: latency, at_most: 1, arm: 'dense#1'}]}\n", "5:49", "no arm is called 'dense#1'"),
        ("gate: {rules: [{kind: size, at_most: 1.0}]}\n", "4:16", "a size rule needs size"),
        ("gate: {rules: [{kind: rungs, rung: frozen}]}\n", "4:16", "a rungs rule needs at_least or layers"),
        ("gate: {rules: [{kind: rungs, rung: frozen, at_least: 2.9}]}\n", "4:16", "`at_least: 2.9` is no number of layers"),
        ("gate: {rules: [{kind: size, size: file, at_most: 1.0, over: sparse}]}\n", "4:16", "held against itself"),
        ("gate: {rules: [{kind: latency, at_most: 1.0, drop_at_most: 0.1}]}\n", "4:16", "a latency rule does not read `drop_at_most`"),
        ("gate: {rules: [{kind: quality, drop_at_most: 1}]}\n", "4:46", "a drop_at_most of 1 cannot fail"),
        ("gate: {rules: [{kind: quality, at_least: 0}]}\n", "4:42", "an at_least of 0 cannot fail"),
        ("train: {device: cpu, finetune: {precision: fp16}}\n", "4:44", "bf16 works on both"),
    ],
)
def test_keys_that_contradict_each_other_are_found(problems, text, place, says):
    found = problems(MINIMAL + text)
    assert len(found) == 1
    assert found[0].startswith(f"{place}: ")
    assert says in found[0]


@pytest.mark.parametrize(
    ("build", "repeats"),
    [
        ({"backend": "tensorrt"}, 3),
        ({"backend": "trtexec", "preset": "release"}, 3),
        ({"backend": "tensorrt", "preset": "diagnose"}, 1),
        ({"backend": "tensorrt", "repeats": 1}, 1),
        ({"backend": "tensorrt-rtx"}, 1),  # its plans are the same to the byte
        ({}, 1),
    ],
)
def test_a_release_that_times_tactics_is_built_three_times(build, repeats):
    assert Build(**build).repeats == repeats


def test_heads_of_model_and_data_must_agree(problems):
    found = problems(MINIMAL.replace("{digits: true}", "{digits: true, heads: {colour: accuracy, label: accuracy}}"))
    assert "data.heads names colour, label, model.heads names label" in found[0]


def test_an_error_may_grow_by_more_than_1_where_a_share_cannot(problems, write):
    heads = MINIMAL.replace("data: {digits: true}", "data: {digits: true, heads: {colour: mse, label: accuracy}}").replace(
        "build'}", "build', heads: [colour, label]}"
    )
    assert load_recipe(write(heads + "gate: {rules: [{kind: quality, head: colour, drop_at_most: 2.0}]}\n"), []).recipe.gate.rules
    found = problems(heads + "gate: {rules: [{kind: quality, drop_at_most: 2.0}]}\n")
    assert "accuracy of label is a share" in found[0]


def test_the_metrics_that_are_shares_are_those_that_are_right_or_wrong_per_sample():
    from pipeline.quality.metrics import METRICS
    from pipeline.recipe.cross import SHARES

    assert set(SHARES) == {name for name, metric in METRICS.items() if metric.binary}
