"""Whatever a file holds, reading it ends soon, with a report or with an error that names the file."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
import synthetic_log as synthetic

from pipeline import tactics
from pipeline.errors import SparsegateError
from pipeline.tactics import reader

DATA = Path(__file__).parent.parent / "data" / "tactics"
SECONDS_PER_MB = 20.0
SECONDS_BESIDES = 0.5
"""Of CPU time. Wide, since they guard against a quadratic step, not against a busy machine."""
TOKENS = (
    b"(Sparsity) |, |(|)|[|]|{|...|**|&&&& RUNNING TensorRT.x [TensorRT v|Tactic: | Time: |Layer(|=== Profile (1 iterations ) ===\n".split(
        b"|"
    )
)
TOKENS += [b"\n", b"\r", b"\0", b"\xff", b"\x1b[0m", b" || ", b"9" * 40]


def samples():
    found = [path.read_bytes() for path in sorted(DATA.iterdir()) if path.name != "expected.json"]
    for i, version in enumerate(synthetic.VERSIONS):
        prefix = sorted(synthetic.PREFIXES)[i % len(synthetic.PREFIXES)]
        found.append(synthetic.text(synthetic.write(synthetic.new(i), version, prefix, 2)).encode())
    return found


def mutate(rng, data, others):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        kind = rng.randrange(7)
        if kind == 0:
            data[i:i] = rng.choice(TOKENS)
        elif kind == 1:
            del data[i : min(j, i + 200)]
        elif kind == 2:
            data[i:i] = data[i : min(j, i + 300)]
        elif kind == 3 and i < len(data):
            data[i] = rng.randrange(256)
        elif kind == 4:
            data = data[:i]
        elif kind == 5:
            other = rng.choice(others)
            k = rng.randrange(len(other))
            data[i:i] = other[k : k + 300]
        else:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        data = data or bytearray(b"\n")
    return bytes(data)


def seconds(path):
    start = time.process_time()
    try:
        tactics.read([str(path)])
    except SparsegateError as error:
        assert "fuzzed.log" in str(error)
    return time.process_time() - start


def fuzz(tmp_path, count, seed, monkeypatch):
    rng = random.Random(seed)
    seeds = samples()
    path = tmp_path / "fuzzed.log"
    for i in range(count):
        data = mutate(rng, rng.choice(seeds), seeds)
        path.write_bytes(data)
        monkeypatch.setattr(reader, "FAST_FROM_BYTES", 0 if i % 2 else 1 << 60)
        monkeypatch.setattr(reader, "FAST_REST_BYTES", 0)
        allowed = SECONDS_BESIDES + SECONDS_PER_MB * len(data) / 1e6
        assert seconds(path) < allowed or seconds(path) < allowed  # the first time may import, or collect another test's garbage


def test_mutations_raise_nothing_else(tmp_path, monkeypatch):
    fuzz(tmp_path, 400, 1, monkeypatch)


@pytest.mark.soak
def test_two_hundred_thousand_mutations(tmp_path, monkeypatch):
    fuzz(tmp_path, int(os.environ.get("SPARSEGATE_MUTATIONS", "200000")), int(os.environ.get("SPARSEGATE_SEED", "2")), monkeypatch)


@pytest.mark.parametrize(
    "data",
    [
        b"(" * 200_000,
        b"(Sparsity) Found 1 layer(s) eligible to use sparse tactics: " + b"(a, " * 50_000,
        b"(Sparsity) Found 1 layer(s) eligible to use sparse tactics: " + b"a || " * 50_000 + b"\n",
        b"[02/03/2026-04:05:06] [V] [TRT] " * 20_000,
        b"> " * 200_000,
        b"(Sparsity) Layers eligible for sparse math: a\n" * 3_000,
        b"(Sparsity) Layers eligible for sparse math: " + b", ".join(b"layer%d" % i for i in range(20_000)) + b", cut",
        b"Name: " + b"a, LayerType" * 50_000,
        b"[" * 300_000 + b'"',
    ],
)
def test_long_and_nested_text_is_read_in_linear_time(tmp_path, data):
    path = tmp_path / "long.log"
    path.write_bytes(data)
    start = time.process_time()
    try:
        tactics.read([str(path)])
    except SparsegateError as error:
        assert "long.log" in str(error)
    assert time.process_time() - start < SECONDS_BESIDES + SECONDS_PER_MB * len(data) / 1e6
