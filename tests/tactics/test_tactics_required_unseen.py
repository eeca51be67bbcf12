"""`--require` of a layer that no name matches: a mistake only where the sources would show it."""

from __future__ import annotations

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import api
from pipeline.errors import InputError
from pipeline.tactics.unseen import Cut, glob

RUN = "TensorRT.trtexec [TensorRT v100300] # trtexec --onnx={}.onnx --sparsity=enable"
FOUND = "[I] [TRT] (Sparsity) Found {} layer(s) eligible to use sparse tactics: {}"
CHOSE = "[I] [TRT] (Sparsity) Chose {} layer(s) using sparse tactics:, {}"
LISTS = [FOUND.format(2, "net/a, net/b"), CHOSE.format(1, "net/a")]


def began(name="n"):
    return f"&&&& RUNNING {RUN.format(name)}"


def ended(name="n", word="PASSED"):
    return f"&&&& {word} {RUN.format(name)}"


def required(tmp_path, lines, pattern):
    path = tmp_path / "build.log"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return api.require_selected(api.read_log(tmp_path), [pattern])


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([began("n"), began("m"), *LISTS, *LISTS, ended("m"), ended("n")], "wrote here at once"),
        ([began(), *LISTS], "breaks off before the build ended"),
        ([began(), *LISTS, ended(word="FAILED")], "the build failed"),
        ([began(), "[I] [TRT] a message", ended()], "the log was cut or filtered"),
        (["&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=n.onnx", ended()], "hides TensorRT's INFO messages"),
        ([began(), FOUND.format(2, "net/a, net/b, net/dec..."), ended()], "a name may be cut there"),
        (["&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --loadEngine=n.plan"], "loads a plan"),
    ],
    ids=["mixed", "cut", "failed", "filtered", "level", "truncated", "loaded"],
)
def test_a_layer_that_the_sources_may_leave_out_is_unknown_and_the_answer_says_why(tmp_path, lines, why):
    (failure,), code = required(tmp_path, lines, "net/decoder/*")
    assert code == 3
    assert (failure.layer, failure.build, failure.selected) == (None, None, "unknown")
    assert why in failure.text
    assert "no layer matches" in failure.text


def test_a_list_shorter_than_its_number_may_leave_the_layer_out(tmp_path):
    (failure,), code = required(tmp_path, [began(), FOUND.format(3, "net/a, net/b"), CHOSE.format(1, "net/a"), ended()], "net/decoder")
    assert code == 3
    assert "of 3 eligible layers" in failure.text


def test_a_file_that_could_not_be_read_may_hold_the_layer(tmp_path):
    (tmp_path / "second.log.gz").write_bytes(gzip.compress(b"x" * 5000)[:-20])
    (failure,), code = required(tmp_path, [began(), *LISTS, ended()], "net/decoder")
    assert code == 3
    assert "second.log.gz was not read" in failure.text


@pytest.mark.parametrize(
    "lines",
    [
        [began(), *LISTS, ended()],
        [began(), FOUND.format(4, "net/a || net/b, net/c || net/d"), CHOSE.format(2, "net/a || net/b"), ended()],
        [began(), FOUND.format(0, ""), CHOSE.format(0, ""), ended()],
    ],
    ids=["lists", "counted by parts", "none eligible"],
)
def test_a_layer_that_whole_lists_do_not_name_is_a_mistake(tmp_path, lines):
    with pytest.raises(InputError, match="no layer matches 'net/decoder'") as caught:
        required(tmp_path, lines, "net/decoder")
    assert "any other one was not selected" in caught.value.hint


def test_cut_text_of_other_names_hides_nothing_from_whole_lists(tmp_path):
    lines = [began(), *LISTS, "[V] [TRT] =============== Computing costs for other/la\ufffd", ended()]
    with pytest.raises(InputError, match="no layer matches"):
        required(tmp_path, lines, "net/decoder")
    assert required(tmp_path, lines, "other/layer*")[1] == 3


def test_a_layer_that_does_match_is_answered_for_itself(tmp_path):
    assert required(tmp_path, [began(), *LISTS, ended(), began("m")], "net/a")[1] == 0
    assert required(tmp_path, [began(), *LISTS, ended(), began("m")], "net/b")[1] == 1


@pytest.mark.parametrize("pattern", ["", " "])
def test_an_empty_pattern_is_a_mistake_whatever_the_sources_hold(tmp_path, pattern):
    with pytest.raises(InputError, match="the pattern is empty"):
        required(tmp_path, [began()], pattern)


@given(st.text("ab?*[", min_size=1, max_size=6), st.text("ab[", min_size=1, max_size=6), st.data())
def test_every_piece_of_a_name_at_its_ends_may_be_of_a_glob_that_matches_it(pattern, name, data):
    if glob(pattern).match(name):
        at = data.draw(st.integers(1, len(name)))
        assert Cut(pattern).may_be(name[:at] + "...")
        assert Cut(pattern).may_be("..." + name[-at:])


@given(st.text("ab?*", min_size=1, max_size=5), st.text("ab", min_size=1, max_size=4))
def test_a_piece_that_no_longer_text_makes_match_may_be_none(pattern, piece):
    longer = ["", *(rest for n in range(1, 6) for rest in map("".join, product_of("ab", n)))]
    matches = any(glob(pattern).match(text) for rest in longer for text in (piece + rest, rest + piece))
    assert Cut(pattern).may_be(piece) == matches


def product_of(letters, count):
    from itertools import product

    return product(letters, repeat=count)


def test_the_sentence_of_a_glob_is_one_line(tmp_path):
    (failure,), _ = required(tmp_path, [began(), FOUND.format(2, "net/a, net/b, net/dec..."), ended()], "net/dec*")
    assert not re.search(r"[\n\x00]", failure.text)
