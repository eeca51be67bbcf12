"""A container runtime breaks lines of over 16 KiB: their parts are one line, whichever way the block is read."""

from __future__ import annotations

import pytest
import synthetic_log as synthetic

from pipeline import tactics
from pipeline.tactics import reader
from pipeline.tactics.parts import joined


def marked(line, size, stream="stdout"):
    """A line as containerd writes it, in parts of a size."""
    parts = [line[at : at + size] for at in range(0, max(len(line), 1), size)]
    return [f"2026-03-04T10:00:00.123456789Z {stream} {'F' if part is parts[-1] else 'P'} {part}" for part in parts]


def read(folder, lines):
    path = folder / "build.log"
    path.write_text("".join(line + "\n" for line in lines))
    return tactics.read([str(path)]).builds


def whole(build):
    return (
        [(layer.name, layer.eligible, layer.timed, layer.selected, layer.best) for layer in build.layers],
        build.truncated,
        build.conflicts,
    )


@pytest.mark.parametrize("size", [90, 150, 16384])
@pytest.mark.parametrize("limit", [0, 1 << 60])
@pytest.mark.parametrize("version", ["8.6", "10.3"])
def test_a_broken_line_is_read_as_one(tmp_path, monkeypatch, version, size, limit):
    monkeypatch.setattr(reader, "FAST_FROM_BYTES", limit)
    monkeypatch.setattr(reader, "FAST_REST_BYTES", 0)
    lines = synthetic.write(synthetic.new(5), version, "trtexec", 8).lines
    (one,) = read(tmp_path, lines)
    (other,) = read(tmp_path, [part for line in lines for part in marked(line, size)])
    assert whole(other) == whole(one)


def test_parts_of_two_streams_that_alternate_are_told_apart():
    out, err = marked("abcdef", 2), marked("uvwxyz", 2, "stderr")
    mixed = [line for pair in zip(out, err) for line in pair]
    assert [line[-6:] for line in joined(mixed)] == ["abcdef", "uvwxyz"]


def test_a_name_in_a_part_whose_rest_is_missing_is_no_name(tmp_path):
    found = "[TRT] [I] (Sparsity) Found 3 layer(s) eligible to use sparse tactics: a/Conv, b/Conv, c/Conv"
    (build,) = read(tmp_path, marked(found, len(found) - 10)[:-1])
    assert (build.eligible, [cut.text for cut in build.truncated]) == (["a/Conv"], ["b/Co"])
