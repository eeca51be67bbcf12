"""The fast way and the slow way give the same tables, also for lines that are nearly of their form."""

from __future__ import annotations

import random

import numpy as np
import pytest
import synthetic_log as synthetic
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from pipeline import tactics
from pipeline.records import io
from pipeline.tactics import condense, reader, walk
from pipeline.tactics.columns import Lines
from pipeline.tactics.fast import _torn
from pipeline.tactics.inputs import Opened
from pipeline.tactics.timed import SLOW, TACTIC, decode
from pipeline.tactics.words import Scratch

SKIPPED = [
    "[02/03/2026-04:05:06] [W] [TRT] Tactic Device request: 5376MB Available: 4041MB. Device memory is insufficient to use tactic.",
    "[02/03/2026-04:05:06] [W] [TRT] Skipping tactic 3 due to insufficient memory on requested size of 5376 detected for tactic 0x0004.",
]


def read_all_ways(path, monkeypatch):
    """The fast way with its lines of structure together and one by one, and the slow way."""
    found = []
    for limit, together_from in ((0, 1), (0, 1 << 60), (1 << 60, 1)):
        monkeypatch.setattr(reader, "FAST_FROM_BYTES", limit)
        monkeypatch.setattr(walk, "TOGETHER_FROM", together_from)
        monkeypatch.setattr(reader, "FAST_REST_BYTES", 0)
        monkeypatch.setattr(reader, "FAST_SPAN_BYTES", 3000)
        with Opened(str(path)) as opened:
            log = reader._read_log(0, opened)
        found.append(
            ([list(build.tables.combinations()) for build in log.builds], io.encode(tactics.read([str(path)])), log.fast is not None)
        )
    return found


def assert_alike(path, monkeypatch):
    together, alone, slow = read_all_ways(path, monkeypatch)
    assert together[-1]
    assert not slow[-1]
    assert together == alone
    assert together[:-1] == slow[:-1]
    return together[0]


def assert_lines_alike(path, lines, monkeypatch):
    path.write_bytes("\n".join([*lines, ""]).encode())
    assert_alike(path, monkeypatch)


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
@example("8.5", "torch-tensorrt", 216, "cut")  # within the id behind a name
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
                        *SKIPPED,
                        lines[i].replace("tensor", "tenser"),
                        lines[i].replace("Tactic Name: ", "Tactic Name: " + "k" * 200),
                    ]
                ),
            )
    path = tmp_path_factory.mktemp("both") / "build.log"
    path.write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as monkeypatch:
        together, alone, slow = read_all_ways(path, monkeypatch)
    assert not slow[-1]
    assert together[-1] or damage != "nothing"
    assert together == alone
    assert together[:-1] == slow[:-1]


def test_times_and_ids_are_decoded_as_python_reads_them():
    rng = random.Random(3)
    times = [f"{rng.uniform(0, 900):.{rng.randint(1, 6)}f}"[:10].rstrip(".") for _ in range(300)] + [
        f"{rng.uniform(0, 0.9):.6g}" for _ in range(300)
    ]
    odd = ["nan", "inf", "1e-05", "0.x1", "0.12.3", ".5", "5.", "", "-0.1", "0,1", "0.1 ", "1234567.12345678"]
    ids = [f"0x{rng.getrandbits(64):016x}" for _ in [*times, *odd]]
    ids[5:8] = ["0xABCDEFABCDEFABCD", "0x123", "0x00000000000000g0"]
    rows = [f"[V] Tactic Name: kernel{i} Tactic: {id_} Time: {ms}" for i, (id_, ms) in enumerate(zip(ids, [*times, *odd]))]
    block = ("\n".join(rows) + "\n").encode()
    lines = Lines(Scratch().hold(block), 0, len(block), 4, b"[V] ")
    kinds = np.full(len(rows), TACTIC, np.uint8)
    timed = decode(block, lines, kinds)
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


def test_a_skipped_tactic_is_counted_again_when_others_were_timed_between(tmp_path, monkeypatch):
    lines = synthetic.write(random.Random(1), "10.3", "trtexec", 3).lines
    timed = [i for i, line in enumerate(lines) if "] Tactic Name: " in line]
    lines[timed[2] : timed[2]] = SKIPPED[:1]
    lines[timed[3] + 1 : timed[3] + 1] = SKIPPED[1:]
    path = tmp_path / "build.log"
    path.write_text("\n".join(lines) + "\n")
    assert_alike(path, monkeypatch)
    assert tactics.read([str(path)]).builds[0].skipped_tactics == 2


def test_names_are_told_apart_where_ids_do_not(tmp_path, monkeypatch):
    """An id that stands for two names, a name longer than those that are proven together, and one that differs in a byte."""
    names = ["sm80_a", "sm80_b", "sm80_sparse_" + "x" * 300, "sm80_sparse_" + "x" * 299, "sm80_a", "sm80_sparse_b", "sm80_b"]
    rows = [f"Tactic Name: {name} Tactic: 0x{i // 4:016x} Time: 0.{i + 1}" for i, name in enumerate(names * 3)]
    rows.insert(0, "--------------- Timing Runner: conv (CaskConvolution[0x80000009])")
    rows.append(">>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x0000000000000000")
    path = tmp_path / "build.log"
    path.write_text("".join(f"[02/03/2026-04:05:06] [V] [TRT] {line}\n" for line in rows * 3))
    builds = assert_alike(path, monkeypatch)
    assert [timing.kernel for timing in builds[0][0].timings] == names * 3


KINDS = ["Autotuning format", "Timing Runner", "Tactic Name: ", "Chose Runner", "Computing costs", "Fastest Tactic", "Skipping"]


def one_of_each(lines):
    """Index of a line of each kind, behind the beginning that is read the slow way in any case."""
    found = {kind: next((i for i, line in enumerate(lines) if kind in line and i > 20), None) for kind in KINDS}
    assert all(found.values())
    return found


@pytest.mark.parametrize("mark", ["\r", "\x1b[33m", "\t"])
def test_a_control_character_inside_a_line_is_read_alike_both_ways(tmp_path, monkeypatch, mark):
    """A carriage return tears a line in two and a colour is taken off, wherever they stand behind the prefix."""
    lines = synthetic.write(random.Random(4), "10.3", "trtexec", 2).lines
    for i in one_of_each(lines).values():
        begin = lines[i].index("[TRT] ") + len("[TRT] ")
        for at in [begin, begin + 35, *range(begin + 9, len(lines[i]) + 1, 31)]:
            assert_lines_alike(tmp_path / "build.log", [*lines[:i], lines[i][:at] + mark + lines[i][at:], *lines[i + 1 :]], monkeypatch)


@pytest.mark.parametrize("cut", KINDS)
def test_two_messages_torn_into_one_line_are_read_alike_both_ways(tmp_path, monkeypatch, cut):
    """Also where the first says nothing, such as a runner that was skipped: the second may begin a layer."""
    lines = synthetic.write(random.Random(4), "10.3", "trtexec", 2).lines
    kinds = one_of_each(lines)
    i = kinds[cut]
    for other in kinds.values():
        assert_lines_alike(tmp_path / "build.log", [*lines[:i], lines[i][:60] + lines[other], *lines[i + 1 :]], monkeypatch)


def test_a_line_that_says_nothing_and_holds_another_is_found_at_any_place_and_length():
    prefix, sign = b"[02/03/2026-04:05:06] [V] [TRT] ", b"[02/03/2026-04:05:06] [V] [TRT] hm"
    for length in (150, 180, 192, 193, 210, 300, 370, 384, 385, 500):
        for place in range(9, length - len(sign)):
            torn = b"Skipping " + b"x" * (place - 9) + sign + b"y" * (length - place - len(sign))
            whole = b"Skipping " + b"x" * (length - 9)
            block = b"".join(prefix + line + b"\n" for line in (whole, torn, whole, torn))
            lines = Lines(Scratch().hold(block), 0, len(block), len(prefix), b"] [V] [TRT] ")
            assert _torn(block, lines, np.arange(4)) == [1, 3]
