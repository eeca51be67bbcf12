"""Runs of trtexec that write into one file at once, without a tag for each process: what cannot be told apart is not told."""

from __future__ import annotations

import pytest
import synthetic_log as synthetic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline import tactics
from pipeline.report import tactics_text

I = "[02/03/2026-04:05:06] [I] [TRT] "  # noqa: E741
BUILT = "[02/03/2026-04:05:06] [I] Engine built in 31.4 sec."
LISTS_A = [
    f"{I}(Sparsity) Found 2 layer(s) eligible to use sparse tactics: a/one, a/two",
    f"{I}(Sparsity) Chose 1 layer(s) using sparse tactics:, a/one",
]
LISTS_B = [
    f"{I}(Sparsity) Found 2 layer(s) eligible to use sparse tactics: b/one, b/two",
    f"{I}(Sparsity) Chose 1 layer(s) using sparse tactics:, b/two",
]


def banner(network):
    return f"&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx={network} --sparsity=enable"


def verdict(network, word="PASSED"):
    return f"&&&& {word} TensorRT.trtexec [TensorRT v100300] # trtexec --onnx={network} --sparsity=enable"


def read(tmp_path, *lines):
    path = tmp_path / "build.log"
    path.write_text("\n".join(lines) + "\n")
    return tactics.read([str(path)])


def codes(build):
    return [conflict.code for conflict in build.conflicts]


def assert_nothing_told(report):
    for build in report.builds:
        assert codes(build) == ["runs-mixed"]
        assert (build.eligible, build.selected, build.disputed, build.layers) == ([], [], [], [])
        assert "file of its own" in build.hint


@pytest.mark.parametrize("first_to_end", ["a.onnx", "b.onnx"])
@pytest.mark.parametrize("lists", [[*LISTS_A, *LISTS_B], [*LISTS_B, *LISTS_A], [LISTS_A[0], *LISTS_B, LISTS_A[1]]])
def test_lists_of_two_runs_that_wrote_at_once_are_told_of_neither(tmp_path, lists, first_to_end):
    ends = [verdict(name) for name in (["a.onnx", "b.onnx"] if first_to_end == "a.onnx" else ["b.onnx", "a.onnx"])]
    report = read(tmp_path, banner("a.onnx"), banner("b.onnx"), *lists, BUILT, BUILT, *ends)
    assert [build.result for build in report.builds] == ["passed", "passed"]
    assert_nothing_told(report)
    last = 10 if first_to_end == "b.onnx" else 9
    assert f"lines 2 to {last}" in report.builds[0].conflicts[0].text
    assert "conflict runs-mixed: lines 2 to" in tactics_text.render(report)


def test_each_verdict_is_given_to_the_run_whose_command_it_repeats(tmp_path):
    report = read(tmp_path, banner("a.onnx"), banner("b.onnx"), *LISTS_A, *LISTS_B, verdict("b.onnx"), verdict("a.onnx", "FAILED"))
    results = [(build.command.split()[1], build.result) for build in report.builds]
    assert results == [("--onnx=a.onnx", "failed"), ("--onnx=b.onnx", "passed")]


def test_different_verdicts_of_runs_of_one_command_are_given_to_none(tmp_path):
    report = read(tmp_path, banner("a.onnx"), banner("a.onnx"), *LISTS_A, verdict("a.onnx"), verdict("a.onnx", "FAILED"))
    assert [build.result for build in report.builds] == [None, None]
    assert_nothing_told(report)


def test_two_runs_of_one_command_are_seen_by_their_two_verdicts(tmp_path):
    report = read(tmp_path, banner("a.onnx"), banner("a.onnx"), *LISTS_A, *LISTS_B, verdict("a.onnx"), verdict("a.onnx"))
    assert [build.result for build in report.builds] == ["passed", "passed"]
    assert_nothing_told(report)


@pytest.mark.parametrize("signs", [[*LISTS_A, BUILT, *LISTS_B, BUILT], [LISTS_A[0], LISTS_B[0], LISTS_A[1], LISTS_B[1]]])
@pytest.mark.parametrize("end", [[], [verdict("b.onnx")]])
def test_without_the_first_verdict_what_one_run_says_once_shows_that_two_wrote(tmp_path, signs, end):
    assert_nothing_told(read(tmp_path, banner("a.onnx"), banner("b.onnx"), *signs, *end))


def test_what_follows_the_first_verdict_is_of_the_run_that_is_left(tmp_path):
    lines = [banner("a.onnx"), banner("b.onnx"), *LISTS_A, BUILT, verdict("a.onnx"), *LISTS_B, BUILT, verdict("b.onnx")]
    first, second = read(tmp_path, *lines).builds
    assert (first.layers, second.eligible, second.selected) == ([], ["b/one", "b/two"], ["b/two"])
    assert (second.result, codes(second)) == ("passed", ["runs-mixed"])


def test_an_engine_that_was_built_before_the_second_run_began_keeps_its_lists(tmp_path):
    lines = [banner("a.onnx"), *LISTS_A, BUILT, banner("b.onnx"), *LISTS_B, verdict("a.onnx"), verdict("b.onnx")]
    first, second = read(tmp_path, *lines).builds
    assert (first.selected, first.result, codes(first)) == (["a/one"], "passed", [])
    assert (second.selected, codes(second)) == ([], ["runs-mixed"])


@pytest.mark.parametrize("again", ["a.onnx", "b.onnx"])
def test_a_run_that_crashed_before_the_next_one_began_mixes_nothing(tmp_path, again):
    first, second = read(tmp_path, banner("a.onnx"), *LISTS_A, banner(again), *LISTS_B, BUILT, verdict(again)).builds
    assert (first.result, first.selected, second.result, second.selected) == ("cut", ["a/one"], "passed", ["b/two"])
    assert codes(first) == codes(second) == []


def test_a_run_behind_mixed_ones_is_read(tmp_path):
    mixed = [banner("a.onnx"), banner("b.onnx"), *LISTS_A, *LISTS_B, verdict("a.onnx"), verdict("b.onnx")]
    third = read(tmp_path, *mixed, banner("c.onnx"), *LISTS_B, BUILT, verdict("c.onnx")).builds[2]
    assert (third.result, third.selected, codes(third)) == ("passed", ["b/two"], [])


def test_figures_of_mixed_runs_are_told_of_neither(tmp_path):
    load = "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --loadEngine=x.plan"
    figure = "[02/03/2026-04:05:06] [I] Throughput: 900 qps"
    report = read(tmp_path, banner("a.onnx"), load, figure, *LISTS_A, verdict("a.onnx"), load.replace("RUNNING", "PASSED"))
    assert [run.performance for run in report.runs] == [{}]
    assert [build.performance for build in report.builds] == [{}]
    assert_nothing_told(report)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(synthetic.VERSIONS), st.integers(0, 10_000), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_lines_of_two_runs_in_any_mixture_decide_no_layer_of_the_other_run(tmp_path, version, seed, verbose, same, rng):
    one, other = (synthetic.write(synthetic.new(seed + i), version, "trtexec", 3 + i, verbose=verbose) for i in range(2))
    streams = [one.lines, [line.replace("stage", "other") for line in other.lines]]
    if not same:
        streams[1] = [line.replace("net.onnx", "b.onnx") for line in streams[1]]
    mixed = [stream.pop(0) for stream in streams]
    while any(streams):
        stream = rng.choice([stream for stream in streams if stream])
        count = rng.choice([1, 1, 5, 20])
        mixed += stream[:count]
        del stream[:count]
    report = read(tmp_path, *mixed)
    assert [build.result for build in report.builds] == ["passed", "passed"]
    told = {layer.name.replace("stage", "other"): layer for layer in other.layers}
    for layer in report.builds[1].layers:
        wanted = told[layer.name]
        assert layer.eligible in ("unknown", "yes" if wanted.eligible else "no")
        assert layer.selected in ("unknown", "yes" if wanted.selected else "no")
    for build, own in zip(report.builds, ("stage", "other")):
        decided = [layer for layer in build.layers if {layer.eligible, layer.timed, layer.selected} & {"yes", "no"}]
        assert codes(build) == ["runs-mixed"]
        assert all(layer.name.startswith(own) for layer in decided)
        assert build is not report.builds[0] or not decided
