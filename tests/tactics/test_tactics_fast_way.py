"""The fast way and the slow way give the same tables, also for lines that are nearly of their form."""

from __future__ import annotations

import random

import numpy as np
import pytest
import synthetic_log as synthetic
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipeline import tactics
from pipeline.records import io
from pipeline.tactics import condense, reader
from pipeline.tactics.columns import Lines
from pipeline.tactics.inputs import Opened
from pipeline.tactics.timed import SLOW, TACTIC, named


def read_both(path, monkeypatch):
    found = []
    for limit in (0, 1 << 60):
        monkeypatch.setattr(reader, "FAST_FROM_BYTES", limit)
        monkeypatch.setattr(reader, "FAST_REST_BYTES", 0)
        with Opened(str(path)) as opened:
            log = reader._read_log(0, opened)
        found.append(
            ([list(build.tables.combinations()) for build in log.builds], io.encode(tactics.read([str(path)])), log.fast is not None)
        )
    return found


@settings(
    max_examples=30,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(synthetic.OLD_VERSIONS + synthetic.VERSIONS),
    st.sampled_from(sorted(set(synthetic.PREFIXES) - {"bare", "ros", "python-logging"})),
    st.integers(0, 10_000),
    st.sampled_from(["nothing", "drop", "swap", "cut", "upper", "join", "insert"]),
)
def test_both_ways_give_the_same_report(tmp_path_factory, version, prefix, seed, damage):
    rng = random.Random(seed)
    lines = synthetic.write(rng, version, prefix, 6).lines + synthetic.write(rng, version, prefix, 2).lines
    for _ in range(0 if damage == "nothing" else 4):
        i = rng.randrange(len(lines) - 1)
        if damage == "drop":
            del lines[i]
        elif damage == "swap":
            lines[i], lines[i + 1] = lines[i + 1], lines[i]
        elif damage == "cut":
            lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
        elif damage == "upper":
            lines[i] = lines[i].upper()
        elif damage == "join":
            lines[i : i + 2] = [lines[i] + lines[i + 1]]
        else:
            lines.insert(
                i,
                rng.choice(
                    [
                        "",
                        "loading weights",
                        "0.5",
                        lines[i][40:],
                        "Tactic: 0x00 Time: 0.1",
                        lines[i - 1][:40],
                        lines[i - 1],
                        lines[rng.randrange(len(lines))],
                        "[02/03/2026-04:05:06] [W] [TRT] hm",
                    ]
                ),
            )
    path = tmp_path_factory.mktemp("both") / "build.log"
    path.write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as monkeypatch:
        (fast, fast_report, used), (slow, slow_report, not_used) = read_both(path, monkeypatch)
    assert not not_used
    assert used or damage != "nothing"
    assert fast == slow
    assert fast_report == slow_report


def test_times_and_ids_are_decoded_as_python_reads_them():
    rng = random.Random(3)
    times = [f"{rng.uniform(0, 900):.{rng.randint(1, 6)}f}"[:10].rstrip(".") for _ in range(300)] + [
        f"{rng.uniform(0, 0.9):.6g}" for _ in range(300)
    ]
    odd = ["nan", "inf", "1e-05", "0.x1", "0.12.3", ".5", "5.", "", "-0.1", "0,1", "0.1 ", "1234567.12345678"]
    ids = [f"0x{rng.getrandbits(64):016x}" for _ in [*times, *odd]]
    ids[5:8] = ["0xABCDEFABCDEFABCD", "0x123", "0x00000000000000g0"]
    rows = [f"[V] Tactic Name: kernel{i} Tactic: {id_} Time: {ms}" for i, (id_, ms) in enumerate(zip(ids, [*times, *odd]))]
    lines = Lines(("\n".join(rows) + "\n").encode(), 4, b"[V] ")
    kinds = np.full(len(rows), TACTIC, np.uint8)
    timed = named(lines, kinds)
    for line, id_, ms in zip(timed.line.tolist(), timed.id.tolist(), timed.ms.tolist()):
        assert (f"0x{id_:016x}", ms) == (ids[line], float([*times, *odd][line]))
    refused = set(np.flatnonzero(kinds == SLOW).tolist())
    assert {5, 6, 7} <= refused
    assert set(range(len(times), len(rows))) <= refused
    assert len(timed.line) > 550


def test_tables_are_condensed_alike_with_and_without_numpy(tmp_path, monkeypatch):
    path = tmp_path / "build.log"
    path.write_text(synthetic.text(synthetic.write(synthetic.new(5), "10.3", "trtexec", 20)))
    with Opened(str(path)) as opened:
        tables = reader._read_log(0, opened).builds[0].tables
    monkeypatch.setattr(condense, "ROWS_AT_ONCE", 7)
    assert condense.plainly(tables) == condense.with_numpy(tables)
    assert [condense.plainly(tables).row_of(i) for row in range(len(tables)) for i in tables.span(row)] == [
        row for row in range(len(tables)) for _ in tables.span(row)
    ]
