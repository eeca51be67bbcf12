"""Text fits its width whatever the names, never obeys what a name says, and is coloured only where that is wanted."""

from __future__ import annotations

import re

import crafted_run as c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline import report
from pipeline.cli import width
from pipeline.records.verdict import RuleResult, Verdict
from pipeline.report.table import columns, md, md_table, text_table
from pipeline.report.words import cells, fit, number, safe, wrapped
from pipeline.verdict import diagnosis, ladder

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=90)


@settings(max_examples=40, deadline=None)
@given(names, st.integers(80, 200))
def test_a_report_fits_its_width_whatever_a_layer_is_called(name, wide):
    odd = replace(c.BODY, id=name, modules=[name], onnx_nodes=[f"/{name}"])
    export = c.exported(layers=[replace(item, layer=odd) if item.layer.id == "body" else item for item in c.exported().layers])
    evidence = c.evidence(train=None, freeze=None, export=export, tactics=c.tactic_report(c.build("sparse", c.engine_layer(odd))))
    verdict = Verdict(outcome=RuleResult.PASS, rules=[], ladder=ladder.build(evidence), findings=diagnosis.diagnose(evidence))
    for line in report.run_text(replace(evidence, gate=verdict), wide).splitlines():
        assert cells(line) <= wide
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line)


@given(st.lists(st.lists(names, min_size=3, max_size=3), min_size=1, max_size=5), st.integers(60, 120))
def test_a_table_keeps_its_width_and_its_columns(rows, wide):
    lines = text_table(columns("~a", "~b", ">n"), [[a, b, str(len(n))] for a, b, n in rows], wide)
    assert len(lines) == len(rows) + 1
    assert all(cells(line) <= wide for line in lines)


@given(names, st.integers(3, 40))
def test_a_shortened_name_keeps_both_ends(name, wide):
    text = safe(name)
    short = fit(text, wide)
    assert cells(short) <= wide
    if cells(text) > wide:
        left, right = short.split("…")[0], short.split("…")[-1]
        assert text.startswith(left)
        assert text.endswith(right)


@given(st.lists(names, min_size=1, max_size=3))
def test_markdown_cells_never_break_the_table(row):
    (_, _, line) = md_table(columns(*"abc"[: len(row)]), [row])
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == len(row) + 1
    assert "\n" not in md(row[0])


@given(st.floats(1e-12, 1e12))
def test_a_number_is_shown_to_four_digits_or_whole(value):
    shown = number(value)
    assert float(shown) == pytest.approx(value, rel=5e-4)
    assert number(shown and float(shown)) == shown


@pytest.mark.parametrize(
    ("tty", "env", "coloured"), [(True, {}, True), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False), (False, {}, False)]
)
def test_colour_is_for_terminals_that_want_it(monkeypatch, tty, env, coloured):
    monkeypatch.setattr("sys.stdout.isatty", lambda: tty, raising=False)
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    text = "FAIL  run\nnext: a\n\nnext: b\n"
    painted = width.paint(text)
    assert ("\x1b[" in painted) is coloured
    assert re.sub(r"\x1b\[\d+m", "", painted) == text
    assert painted.count("\x1b[1m") == (2 if coloured else 0)


def test_wrapped_text_indents_what_follows():
    lines = wrapped("a " * 60, 40, first="x: ", rest="   ")
    assert lines[0].startswith("x: a")
    assert all(line.startswith("   a") for line in lines[1:])
    assert max(map(len, lines)) <= 40
