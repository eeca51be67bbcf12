"""Lines padded with blanks, to the width at which they are wrapped or to another: no blank of the padding gets into a name."""

from __future__ import annotations

import pytest
import synthetic_log as synthetic
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pipeline import tactics
from pipeline.errors import InputError


def padded(lines, wrap, column, *, stripped=False):
    pieces = [line[at : at + wrap] for line in lines for at in range(0, max(len(line), 1), wrap)]
    return "".join((piece.rstrip() if stripped else piece).ljust(column) + "\n" for piece in pieces)


def read(tmp_path, text):
    path = tmp_path / "build.log"
    path.write_text(text)
    return tactics.read([str(path)]).builds


def assert_no_false_name(builds, truth):
    for build in builds:
        assert {layer.name for layer in build.layers} <= {layer.name for layer in truth.layers}
        assert set(build.eligible) <= set(truth.eligible)
        assert set(build.selected) <= set(truth.selected)
        if set(build.eligible) != set(truth.eligible):
            assert build.truncated


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(synthetic.VERSIONS),
    st.sampled_from(sorted(synthetic.PREFIXES)),
    st.integers(0, 10_000),
    st.integers(1, 8),
    st.integers(40, 170),
    st.sampled_from([0, 1, 2, 5, 40]),
    st.booleans(),
)
def test_a_wrapped_log_that_was_padded_afterwards_gives_no_false_name(tmp_path, version, prefix, seed, count, wrap, more, stripped):
    assume(wrap > len(synthetic.PREFIXES[prefix]("I", False)))  # a prefix that is itself wrapped is another matter
    truth = synthetic.write(synthetic.new(seed), version, prefix, count, verbose=False)
    try:
        builds = read(tmp_path, padded(truth.lines, wrap, wrap + more, stripped=stripped))
    except InputError as error:
        assert "no TensorRT build found" in str(error)
        return
    assert_no_false_name(builds, truth)


@pytest.mark.parametrize("more", [2, 5, 40])
@pytest.mark.parametrize("version", ["8.6", "10.3"])
def test_a_log_of_many_full_lines_is_read_whole_though_it_was_padded_beyond_its_wrap(tmp_path, version, more):
    truth = synthetic.write(synthetic.new(5), version, "trtexec", 8, verbose=False)
    (build,) = read(tmp_path, padded(truth.lines, 77, 77 + more))
    assert (build.eligible, sorted(build.selected)) == (truth.eligible, sorted(truth.selected))


@pytest.mark.parametrize("column", [400, 2000])
def test_a_log_that_was_padded_and_not_wrapped_is_read_whole(tmp_path, column):
    truth = synthetic.write(synthetic.new(5), "10.3", "trtexec", 8, verbose=False)
    (build,) = read(tmp_path, "".join(line.ljust(column) + "\n" for line in truth.lines))
    assert (build.eligible, sorted(build.selected)) == (truth.eligible, sorted(truth.selected))
