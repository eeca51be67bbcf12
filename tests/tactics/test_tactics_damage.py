"""Damage that leaves a file readable: what is missing must be told, and nothing invented."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
import synthetic_log as synthetic
import zstandard
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pipeline import tactics
from pipeline.errors import InputError
from pipeline.tactics import reader

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data" / "tactics"
PREFIX = "[02/03/2026-04:05:06] [I] [TRT] "
SUMMARY = [
    f"{PREFIX}(Sparsity) Found 2 layer(s) eligible to use sparse tactics: a, b",
    f"{PREFIX}(Sparsity) Chose 1 layer(s) using sparse tactics:, a",
]


def long_text():
    rng = random.Random(7)
    noise = [f"{PREFIX}Trace {rng.getrandbits(400):x}" for _ in range(20_000)]
    return "".join(line + "\n" for line in [*SUMMARY, *noise]).encode()


@pytest.mark.parametrize("share", [0.25, 0.5, 0.999])
def test_a_zstd_file_that_ends_within_a_frame_is_refused_as_cut(tmp_path, share):
    packed = zstandard.compress(long_text())
    path = tmp_path / "build.log.zst"
    path.write_bytes(packed[: int(len(packed) * share)])
    with pytest.raises(InputError, match="ended before the end") as caught:
        tactics.read([str(path)])
    assert "damaged or cut" in str(caught.value) + str(caught.value.hint)


def test_all_frames_of_a_zstd_file_are_read(tmp_path):
    text = long_text()
    frames = [zstandard.compress(text[at : at + 300_000]) for at in range(0, len(text), 300_000)]
    path = tmp_path / "build.log.zst"
    path.write_bytes(b"".join([*frames[:2], b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip", *frames[2:], zstandard.compress(b"")]))
    from pipeline.tactics.inputs import Opened

    with Opened(str(path)) as opened:
        assert b"".join(opened.blocks()) == text


def under(text, before, end="\n"):
    return "".join(before + line + end for line in text.splitlines())


def read(tmp_path, text):
    path = tmp_path / "build.log"
    path.write_bytes(text.encode())
    return tactics.read([str(path)]).builds


@pytest.mark.parametrize(
    ("before", "end"),
    [("", "\n"), ("> ", "\n"), ("2026-01-01T00:00:00Z ", "\n"), ("2026-01-01T00:00:00.1234567+01:00 ", "\n"), ("torn ", "\n"), ("", "\r")],
)  # fmt: skip
def test_a_list_longer_than_its_number_is_disputed_however_it_was_quoted(tmp_path, before, end):
    text = (DATA / "trt103_count_and_list_disagree.log").read_text()
    (build,) = read(tmp_path, under(text, before, end))
    selected = {layer.name: layer.selected.value for layer in build.layers}
    assert selected["/enc/a/cv1/Conv || /enc/a/cv2/Conv"] == selected["/enc/b/cv1/Conv || /enc/b/cv2/Conv"] == "disputed"
    assert build.passes[0].selected_declared == 0


@pytest.mark.parametrize("before", ["> ", "2026-01-01T00:00:00Z "])
def test_a_quote_mark_or_a_runners_time_before_each_line_changes_no_layer(tmp_path, before):
    text = (DATA / "trt103_count_and_list_disagree.log").read_text()
    assert read(tmp_path, under(text, before)) == read(tmp_path, text)


@pytest.mark.parametrize("sample", ["trt86_verbose.log", "trt104_verbose.log"])
@pytest.mark.parametrize("width", [*range(118, 226, 3), 190, 200, 215])
def test_a_file_cut_at_a_column_gives_no_shortened_name_and_proves_no_absence(tmp_path, sample, width):
    text = (ROOT / "recipes" / "samples" / sample).read_text()
    (whole,) = read(tmp_path, text)
    (build,) = read(tmp_path, "".join(line[:width] + "\n" for line in text.splitlines()))
    rungs = {layer.name: layer for layer in whole.layers}
    assert set(build.eligible) <= set(whole.eligible)
    assert set(build.selected) <= set(whole.selected)
    for layer in build.layers:
        if layer.name in rungs:
            assert layer.eligible.value in (rungs[layer.name].eligible.value, "unknown")
            assert layer.selected.value in (rungs[layer.name].selected.value, "unknown")


def test_the_name_at_a_column_cut_is_reported_as_truncated(tmp_path):
    text = (ROOT / "recipes" / "samples" / "trt86_verbose.log").read_text()
    (build,) = read(tmp_path, "".join(line[:215] + "\n" for line in text.splitlines()))
    assert [cut.text for cut in build.truncated] == ["stage0/block3/Conv + stage0/block3.add + stag"]
    (layer,) = [layer for layer in build.layers if layer.name.startswith("stage0/block3/Conv +")]
    assert layer.eligible.value == "unknown"


def test_a_list_as_long_as_one_other_line_or_padded_with_blanks_is_whole(tmp_path):
    lines = [*SUMMARY, (PREFIX + "x" * 200)[: len(SUMMARY[0])]]
    assert read(tmp_path, under("\n".join(lines), ""))[0].eligible == ["a", "b"]
    padded = "\n".join(line.ljust(150) for line in [*SUMMARY, PREFIX + "something", PREFIX + "else"])
    assert read(tmp_path, under(padded, ""))[0].eligible == ["a", "b"]


def test_both_ways_tell_a_column_cut_alike(tmp_path, monkeypatch):
    text = (ROOT / "recipes" / "samples" / "trt86_verbose.log").read_text()
    path = tmp_path / "build.log"
    path.write_text("".join(line[:212] + "\n" for line in text.splitlines()))
    found = []
    for limit in (0, 1 << 60):
        monkeypatch.setattr(reader, "FAST_FROM_BYTES", limit)
        monkeypatch.setattr(reader, "FAST_REST_BYTES", 0)
        found.append(tactics.read([str(path)]))
    assert found[0] == found[1]
    assert found[0].builds[0].truncated


def test_a_name_that_ends_in_two_dots_was_cut(tmp_path):
    (build,) = read(tmp_path, f"{PREFIX}(Sparsity) Layers eligible for sparse math: conv1, stage0/bl..\n")
    assert build.eligible == ["conv1"]
    assert [cut.text for cut in build.truncated] == ["stage0/bl.."]


NAMES = [
    "%7 : Tensor = aten::conv(%a, %b) # net.py:14:3",
    "(Unnamed Layer* 12) [Convolution] + (Unnamed Layer* 14) [Activation]",
    "{ForeignNode[/a/Constant_output_0.../a/Softmax]}",
    "Reformatting CopyNode for Input Tensor 0 to conv + relu",
    "[CONVOLUTION]-[aten_ops.convolution.default]-[/layer1/conv1] || [MUL]-[aten_ops.mul.Tensor]-[/layer/mul]_clone",
    "onnx::Conv_123 + node_of_124",
    "StatefulPartitionedCall/model/conv2d/Conv2D__6:0",
]


def test_names_that_look_odd_are_names(tmp_path):
    found = f"{PREFIX}(Sparsity) Found {sum(name.count(' || ') + 1 for name in NAMES)} layer(s) eligible to use sparse tactics: "
    (build,) = read(tmp_path, found + ", ".join(NAMES) + "\n")
    assert (build.eligible, build.truncated) == (NAMES, [])


@pytest.mark.parametrize(
    "rest",
    [
        "conv1 +",
        "conv1 ||",
        "a/",
        "a/conv...b/relu",
        "conv1Total Activation Memory: 123",
        "conv1Engine generation completed in 3.2 seconds.",
        "conv1Finished engine building in 12.1 seconds",
        "conv1Saved the plan to disk",
        "x[Half(1,2)] -> y[Half(1,2)]",
    ],
)
def test_what_a_cut_or_a_lost_line_feed_leaves_is_no_name(tmp_path, rest):
    (build,) = read(tmp_path, f"{PREFIX}(Sparsity) Layers eligible for sparse math: stem, {rest}\n")
    assert ([layer.name for layer in build.layers], [cut.text for cut in build.truncated]) == (["stem"], [rest])


@pytest.mark.parametrize("rest", ["stage0/bl", "stage0", "stage0/block0/Conv + stage0/blo"])
def test_a_last_name_that_breaks_off_within_a_word_or_a_path_of_another_is_none(tmp_path, rest):
    (build,) = read(tmp_path, f"{PREFIX}(Sparsity) Layers eligible for sparse math: stage0/block0/Conv, stage0/block1/Conv, {rest}\n")
    assert (build.eligible, [cut.text for cut in build.truncated]) == (["stage0/block0/Conv", "stage0/block1/Conv"], [rest])


def folded(text, width, *, stripped):
    pieces = [line[at : at + width] for line in text.splitlines() for at in range(0, len(line), width)]
    return "".join((piece.rstrip() if stripped else piece) + "\n" for piece in pieces)


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("log", ["trt1014_two_passes.log", "polygraphy_colours.log", "trt103_count_and_list_disagree.log"])
def test_no_name_of_a_hard_wrapped_list_begins_with_a_comma_or_a_blank(tmp_path, log, stripped):
    text = re.sub("\x1b\\[[0-9;]*m", "", (DATA / log).read_text())
    names = {layer.name for build in read(tmp_path, text) for layer in build.layers}
    for width in range(50, 130):
        for build in read(tmp_path, folded(text, width, stripped=stripped)):
            assert not [layer.name for layer in build.layers if layer.name[0] in ", "]
            assert stripped or {layer.name for layer in build.layers} <= names, width


@pytest.mark.parametrize(("log", "width"), [("trt1014_two_passes.log", 83), ("polygraphy_colours.log", 65)])
def test_a_wrap_right_behind_the_wordings_comma_loses_no_list(tmp_path, log, width):
    text = (DATA / log).read_text()
    (whole,), (build,) = read(tmp_path, text), read(tmp_path, folded(text, width, stripped=False))
    assert (build.eligible, build.selected) == (whole.eligible, whole.selected)


CHOSE_ONE = f"{PREFIX}(Sparsity) Chose 1 layer(s) using sparse tactics:, conv1\n"
OPTION = "[02/03/2026-04:05:06] [I] Sparsity: "
COMMAND = "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=a.onnx --sparsity="


@pytest.mark.parametrize("found", ["", f"{PREFIX}(Sparsity) Found 1 layer(s) eligible to use sparse tactics: conv1\n"])
@pytest.mark.parametrize("before", [f"{OPTION}Disabled\n", f"{COMMAND}disable\n"])
def test_a_layer_chosen_while_sparsity_was_disabled_is_disputed(tmp_path, before, found):
    (build,) = read(tmp_path, before + found + CHOSE_ONE)
    assert (build.selected, build.disputed) == ([], ["conv1"])
    assert [conflict.code for conflict in build.conflicts] == ["option-and-list-disagree"]


@pytest.mark.parametrize("before", [f"{OPTION}Enabled\n", f"{OPTION}Forced\n", f"{COMMAND}enable\n", ""])
def test_a_layer_chosen_while_sparsity_was_on_or_not_stated_is_selected(tmp_path, before):
    (build,) = read(tmp_path, before + CHOSE_ONE)
    assert (build.selected, build.disputed) == (["conv1"], [])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(synthetic.OLD_VERSIONS + synthetic.VERSIONS),
    st.sampled_from(sorted(synthetic.PREFIXES)),
    st.integers(0, 10_000),
    st.integers(40, 160),
    st.sampled_from([0, 1, 2, 5, 20]),
)
def test_a_text_wrapped_and_padded_beyond_its_width_gives_no_false_name(tmp_path_factory, version, prefix, seed, width, more):
    """As a terminal's contents are copied: the blanks at the end of a line are no part of a name."""
    assume(width > len(synthetic.PREFIXES[prefix]("I", False)))  # a prefix that is itself wrapped is another matter
    lines = synthetic.write(random.Random(seed), version, prefix, 6).lines
    wrapped = [line[i : i + width] for line in lines for i in range(0, max(len(line), 1), width)]
    folder = tmp_path_factory.mktemp("padded")
    (folder / "whole.log").write_text("\n".join(lines) + "\n")
    (folder / "padded.log").write_text("\n".join(line.ljust(width + more) for line in wrapped) + "\n")
    whole = {layer.name: layer for build in tactics.read([str(folder / "whole.log")]).builds for layer in build.layers}
    for layer in [layer for build in tactics.read([str(folder / "padded.log")]).builds for layer in build.layers]:
        truth = whole[layer.name]
        for rung in ("eligible", "timed", "selected"):
            assert {getattr(layer, rung), getattr(truth, rung)} != {"yes", "no"}
