"""Engine parity and energy in the report of a run, as text, Markdown and JSON."""

from __future__ import annotations

import json

import crafted_run as c
import pytest

from pipeline import report
from pipeline.records.io import encode
from pipeline.records.measurement import Energy, EngineParity, Estimate
from pipeline.report.parity_view import PARITY, parity_rows


def probed(against: str = "twin", shape: str = "opt", **failing: dict[str, object]) -> list[EngineParity]:
    """The four probes of one point; `failing` changes single ones."""
    base = {"engine": "sparse", "against": against, "profile": 0, "shape": shape, "max_abs": 0.004, "tolerance": 0.02}
    rows = {
        "random": {"max_rel": 0.001},
        "nan": {"max_rel": 0.0, "lost_nonfinite": 3},
        "inf": {"max_rel": 0.0},
        "rows": {"max_rel": 0.002, "rows_differ": 0.0005},
    }
    return [EngineParity(**{**base, "probe": probe, "passed": True, **found, **failing.get(probe, {})}) for probe, found in rows.items()]


def cells(rows: list[EngineParity]) -> list[dict[str, str]]:
    titles = [column.title for column in PARITY]
    return [dict(zip(titles, row, strict=True)) for row in parity_rows(c.measurement(parity=rows))]


def test_one_row_per_pair_and_point():
    found = cells([*probed(shape="min"), *probed(), *probed("onnxruntime")])
    assert [(row["engine/oracle"], row["profile"]) for row in found] == [
        ("sparse/twin", "0 min"),
        ("sparse/twin", "0 opt"),
        ("sparse/onnxruntime", "0 opt"),
    ]
    assert found[0] == {
        "engine/oracle": "sparse/twin",
        "profile": "0 min",
        "max abs": "0.004",
        "max rel": "0.002",
        "at most": "0.02",
        "NaN/Inf": "3 lost",
        "rows": "0.0005",
        "agree": "yes",
    }


def test_what_fails_is_named_with_what_could_not_be_compared():
    (row,) = cells(probed(random={"passed": False, "max_rel": 0.5}, nan={"passed": False, "new_nonfinite": 40, "note": "y is [3]"}))
    assert row["agree"] == "no: random, nan; y is [3]"
    assert row["NaN/Inf"] == "3 lost, 40 new"
    assert row["max rel"] == "0.5"


def test_figures_that_an_older_record_lacks_are_no_zeros():
    old = EngineParity(engine="sparse", against="twin", profile=0, shape="opt", probe="random", max_rel=0.001, passed=True)
    (row,) = cells([old])
    assert (row["max abs"], row["at most"], row["NaN/Inf"], row["rows"]) == ("-", "-", "-", "-")
    assert cells(probed(nan={"lost_nonfinite": 0}))[0]["NaN/Inf"] == "alike"


ENERGY = Energy(
    arm="sparse",
    shape="batch=32",
    millijoules=Estimate(value=41.5, low=40.0, high=43.0, confidence=0.9, n=8),
    how="the GPU's own energy counter (NVML)",
)


@pytest.mark.parametrize("width", [80, 120])
def test_the_text_has_both_within_the_width(width):
    failing = probed("onnxruntime", rows={"passed": False, "rows_differ": 0.25, "note": "y is [3, 10], the oracle's [4, 10]"})
    text = report.run_text(c.evidence(measure=c.measurement(parity=[*probed(), *failing], energy=[ENERGY])), width)
    assert max(map(len, text.splitlines())) <= width
    assert "engine/oracle" in text
    assert "no: r" in text
    assert "41.5 [40, 43]" in text
    assert "max abs, max rel: largest difference" in text


def test_the_markdown_has_a_section_for_each():
    text = report.run_markdown(c.evidence(measure=c.measurement(parity=probed(), energy=[ENERGY])))
    assert "## Parity of engines" in text
    assert "| sparse/twin | 0 opt | 0.004 | 0.002 | 0.02 | 3 lost | 0.0005 | yes |" in text
    assert "## Energy" in text
    assert "the GPU's own energy counter" in text


def test_the_json_has_every_probe():
    found = json.loads(encode(c.measurement(parity=probed())))["parity"]
    assert {row["probe"] for row in found} == {"random", "nan", "inf", "rows"}
    assert all(row["tolerance"] == 0.02 and row["max_abs"] == 0.004 for row in found)


def test_without_records_there_is_no_section():
    evidence = c.evidence()
    assert "engine/oracle" not in report.run_text(evidence, 80)
    assert "Parity of engines" not in report.run_markdown(evidence)
    assert "## Energy" not in report.run_markdown(evidence)
