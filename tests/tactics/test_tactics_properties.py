"""Over versions, prefixes, builds and damage: reading gives back the truth, or says what is missing; never a false name."""

from __future__ import annotations

import re
import string

import synthetic_log as synthetic
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline import tactics

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
versions = st.sampled_from(synthetic.VERSIONS)
prefixes = st.sampled_from(sorted(synthetic.PREFIXES))
seeds = st.integers(0, 10_000)


def read(tmp_path, text):
    path = tmp_path / "build.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return tactics.read([str(path)])


def assert_no_false_name(report, truth):
    """Every name is a layer of the truth, and every selection is true."""
    names = {layer.name for layer in truth.layers}
    for build in report.builds:
        assert {layer.name for layer in build.layers} <= names
        assert set(build.eligible) <= set(truth.eligible)
        assert set(build.selected) <= set(truth.selected)


def assert_whole(build, truth):
    assert build.eligible == truth.eligible
    assert sorted(build.selected) == sorted(truth.selected)
    assert (build.disputed, build.conflicts, build.truncated) == ([], [], [])


@SETTINGS
@given(versions, prefixes, seeds, st.integers(1, 8))
def test_an_undamaged_verbose_log_gives_back_the_truth(tmp_path, version, prefix, seed, count):
    truth = synthetic.write(synthetic.new(seed), version, prefix, count)
    (build,) = read(tmp_path, synthetic.text(truth)).builds
    assert_whole(build, truth)
    layers = {layer.name: layer for layer in build.layers}
    assert list(layers) == [layer.name for layer in truth.layers]
    for wanted in truth.layers:
        found = layers[wanted.name]
        assert (found.tactic.name, found.tactic.id, found.tuned_ms) == wanted.winner
        assert found.tactic.how == "engine-dump"
        assert (found.best.sparse.ms if wanted.eligible else None) == wanted.best(True)
        assert found.best.dense.ms == wanted.best(False)
        assert found.best.dense.format == wanted.combinations[wanted.final][0]
        every = [name for _, tactics in wanted.combinations for name, _, _ in tactics]
        assert (found.candidates.sparse, found.candidates.dense) == (
            sum(map(synthetic.is_sparse, every)),
            sum(not synthetic.is_sparse(n) for n in every),
        )


@SETTINGS
@given(versions, prefixes, seeds, st.integers(1, 12))
def test_an_undamaged_info_log_gives_back_the_lists(tmp_path, version, prefix, seed, count):
    truth = synthetic.write(synthetic.new(seed), version, prefix, count, verbose=False)
    (build,) = read(tmp_path, synthetic.text(truth)).builds
    assert_whole(build, truth)


@SETTINGS
@given(st.lists(versions, min_size=2, max_size=4), seeds, st.booleans(), st.sampled_from(["trtexec", "python", "polygraphy"]))
def test_builds_in_one_file_are_told_apart(tmp_path, several, seed, verbose, prefix):
    truths = [synthetic.write(synthetic.new(seed + i), version, prefix, 4, verbose=verbose) for i, version in enumerate(several)]
    builds = read(tmp_path, synthetic.text(*truths)).builds
    assert len(builds) == len(truths)
    for build, truth in zip(builds, truths):
        assert_whole(build, truth)


@SETTINGS
@example("8.4", 0, 4, 69, False, "trtexec", True)  # a line of the dump ends at the width
@given(
    versions,
    seeds,
    st.integers(1, 12),
    st.integers(40, 160),
    st.booleans(),
    st.sampled_from(["trtexec", "python", "polygraphy", "plain", "triton"]),
    st.booleans(),
)
def test_a_hard_wrapped_log_gives_no_false_name(tmp_path, version, seed, count, width, padded, prefix, verbose):
    truth = synthetic.write(synthetic.new(seed), version, prefix, count, verbose=verbose)
    wrapped = []
    for line in truth.lines:
        pieces = [line[i : i + width] for i in range(0, len(line), width)] or [""]
        wrapped += [piece.ljust(width) if padded else piece.rstrip(" ") for piece in pieces]
    report = read(tmp_path, "\n".join(wrapped) + "\n")
    assert_no_false_name(report, truth)
    (build,) = report.builds
    missing = set(truth.eligible) - set(build.eligible)
    if missing:
        assert build.truncated


@SETTINGS
@given(versions, prefixes, seeds, st.data(), st.booleans())
def test_a_cut_end_gives_no_false_name(tmp_path, version, prefix, seed, data, verbose):
    truth = synthetic.write(synthetic.new(seed), version, prefix, 6, verbose=verbose)
    raw = synthetic.text(truth).encode()
    end = data.draw(st.integers(raw.find(b"Sparsity) ") if b"Sparsity) " in raw else 0, len(raw)))
    try:
        report = read(tmp_path, raw[:end])
    except tactics.InputError as error:
        assert "no TensorRT build found" in str(error)
        return
    assert_no_false_name(report, truth)


@SETTINGS
@given(versions, prefixes, seeds, st.data())
def test_a_cut_beginning_gives_no_false_name(tmp_path, version, prefix, seed, data):
    truth = synthetic.write(synthetic.new(seed), version, prefix, 6)
    raw = synthetic.text(truth).encode()
    start = data.draw(st.integers(0, len(raw) - 1))
    try:
        report = read(tmp_path, raw[start:])
    except tactics.InputError:
        return
    for build in report.builds:
        assert set(build.selected) <= set(truth.selected)


@SETTINGS
@given(
    versions,
    seeds,
    st.sampled_from(["trtexec", "python", "polygraphy", "plain", "onnxruntime"]),
    st.sampled_from(["crlf", "ansi", "quoted", "bold", "padded", "nul", "bom", "utf-16", "torn"]),
)
def test_what_tools_do_to_whole_lines_changes_nothing(tmp_path, version, seed, prefix, damage):
    truth = synthetic.write(synthetic.new(seed), version, prefix, 6)
    change = {
        "crlf": lambda line: line + "\r",
        "ansi": lambda line: f"\x1b[38;5;13m{line}\x1b[0m",
        "quoted": lambda line: "> " + line,
        "bold": lambda line: f"**{line}**",
        "padded": lambda line: line.ljust(400),
        "nul": lambda line: line,
        "bom": lambda line: line,
        "utf-16": lambda line: line,
        "torn": lambda line: re.sub(r"^(\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )", r"\1\1", line),
    }[damage]
    text = "".join(change(line) + "\n" for line in truth.lines)
    raw = {"nul": b"\0" * 512 + text.encode() + b"\0" * 512, "bom": b"\xef\xbb\xbf" + text.encode(), "utf-16": text.encode("utf-16")}.get(
        damage, text.encode()
    )
    (build,) = read(tmp_path, raw).builds
    assert_whole(build, truth)


@SETTINGS
@given(versions, seeds, st.data())
def test_damaged_bytes_give_no_false_name(tmp_path, version, seed, data):
    truth = synthetic.write(synthetic.new(seed), version, "trtexec", 5)
    raw = bytearray(synthetic.text(truth).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from([0x00, 0xFF, 0x80, 0xC3]))
    report = read(tmp_path, bytes(raw))
    assert_no_false_name(report, truth)


@SETTINGS
@given(st.tuples(versions, versions), seeds, st.randoms(use_true_random=False))
def test_interleaved_processes_are_told_apart(tmp_path, pair, seed, rng):
    truths = [synthetic.write(synthetic.new(seed + i), version, "ros", 4) for i, version in enumerate(pair)]
    streams = [
        [
            (line if line.startswith("[detector") else "[detector_node-1] " + line).replace(
                "detector_node-1", f"node_{string.ascii_lowercase[i]}-{i + 1}"
            )
            for line in truth.lines
        ]
        for i, truth in enumerate(truths)
    ]
    mixed = []
    while any(streams):
        mixed.append(rng.choice([stream for stream in streams if stream]).pop(0))
    builds = read(tmp_path, "\n".join(mixed) + "\n").builds
    assert sorted(sorted(build.eligible) for build in builds) == sorted(sorted(truth.eligible) for truth in truths)
    assert sorted(sorted(build.selected) for build in builds) == sorted(sorted(truth.selected) for truth in truths)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions, seeds)
def test_single_deletions_outside_the_summary_leave_the_lists(tmp_path, version, seed):
    truth = synthetic.write(synthetic.new(seed), version, "trtexec", 3)
    outside = [i for i in range(len(truth.lines)) if i not in truth.summary]
    unchanged = 0
    for i in outside:
        report = read(tmp_path, "".join(line + "\n" for j, line in enumerate(truth.lines) if j != i))
        assert_no_false_name(report, truth)
        build = report.builds[0]
        unchanged += (build.eligible, sorted(build.selected)) == (truth.eligible, sorted(truth.selected)) and len(report.builds) == 1
    assert unchanged >= 0.9 * len(outside)
