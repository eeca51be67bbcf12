"""A count of layers of which nothing is known is never printed as 0."""

from __future__ import annotations

import crafted_run as c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.check import CheckedLayer, CheckReport, CheckTotals, Target
from pipeline.records.rung import Rung, tally
from pipeline.records.tactics import Tactic
from pipeline.report.check_text import summary
from pipeline.report.differences import diff_text, stability_text
from pipeline.report.tactics_text import totals
from pipeline.verdict.diff import diff_builds
from pipeline.verdict.stability import stability

UNKNOWN = {"eligible": Rung.UNKNOWN, "timed": Rung.UNKNOWN, "selected": Rung.UNKNOWN}


def hidden(item=c.BODY):
    """An engine layer whose kernel's name tells nothing."""
    kernel = Tactic(name="__myl_Mul_0", kind="unknown", id="0x0", runner="Myelin", how="engine-dump")
    return c.engine_layer(item, **UNKNOWN, tactic=kernel, evidence=[])


@given(st.lists(st.sampled_from(list(Rung))))
def test_a_tally_is_none_or_a_count(rungs):
    found, unknown = tally(rungs)
    told = [rung for rung in rungs if rung not in (Rung.UNKNOWN, Rung.NOT_APPLICABLE)]
    assert (found is None) == (not told)
    assert unknown == rungs.count(Rung.UNKNOWN)
    assert found in (None, rungs.count(Rung.YES))


def test_totals_of_a_build():
    silent = c.build("sparse", hidden(), eligible=[], selected=[], passes=[])
    assert totals(silent).startswith("eligible not known, selected not known, 0 disputed")
    assert totals(c.build("sparse", c.engine_layer(c.BODY), hidden(c.TAIL))).startswith(
        "1 eligible (1 not known), 1 selected (1 not known)"
    )
    twin = c.build("twin", eligible=[], selected=[], passes=[])
    assert totals(twin).startswith("eligible not known, 0 selected")


def test_a_summary_of_no_layers_is_a_zero():
    """As in a build of FP32 alone: both lists are there, and empty."""
    empty = c.build("sparse", layers=[], eligible=[], selected=[])
    assert totals(empty).startswith("0 eligible, 0 selected")


def test_a_diff_of_builds_that_do_not_tell():
    a, b = (c.build("sparse", hidden(), number=number) for number in (0, 1))
    assert "sparse unknown -> unknown" in diff_text(diff_builds(a, b))
    told = c.build("sparse", c.engine_layer(c.BODY), hidden(c.TAIL))
    assert "sparse 1 (1 unknown) -> unknown" in diff_text(diff_builds(told, b))


def test_stability_of_builds_that_do_not_tell():
    builds = [c.build("sparse", hidden(), number=number) for number in range(3)]
    assert "0 layers of 0 sparse in some builds, dense in others; of 1 layer no build tells" in stability_text(
        stability(builds, "abc"), 120
    )


@pytest.mark.parametrize(
    ("rungs", "words"), [(["unknown"] * 3, "unknown"), (["no", "unknown"], "0 (1 unknown)"), (["yes", "no"], "1"), ([], "none")]
)
def test_a_check_without_a_target(rungs, words):
    layers = [
        CheckedLayer(
            node=str(at),
            graph="",
            op="Conv",
            weight="w",
            operand=1,
            shape=[8, 8],
            axis=1,
            dtype="float16",
            two_four=True,
            eligible=Rung(rung),
        )
        for at, rung in enumerate(rungs)
    ]
    report = CheckReport(
        model=c.artifact(), target=Target(), layers=layers, totals=CheckTotals(layers=len(rungs), two_four=0, eligible=rungs.count("yes"))
    )
    assert summary(report).endswith(f": {words}")
