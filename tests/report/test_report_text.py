"""The report answers on its first screen, says how sure it is on its second, and ends with what to do next."""

from __future__ import annotations

import crafted_run as c
import pytest

from pipeline import report
from pipeline.records.quality import HeadQuality, Quality, Slice
from pipeline.records.verdict import JudgedRule, RuleResult, Verdict
from pipeline.report.run_rows import quality_rows
from pipeline.verdict import diagnosis, ladder


def judged(evidence, *rules, outcome=RuleResult.PASS):
    from msgspec.structs import replace

    found = Verdict(outcome=outcome, rules=list(rules), ladder=ladder.build(evidence), findings=diagnosis.diagnose(evidence))
    return replace(evidence, gate=found)


def rule(outcome=RuleResult.PASS, why="the upper bound is below the budget"):
    return JudgedRule(
        id="latency:sparse/dense:batch=32:p50",
        kind="latency",
        outcome=outcome,
        text="sparse/dense p50 at batch=32 at most 1.1",
        why=why,
        value=0.9,
        low=0.88,
        high=0.93,
        budget=1.1,
        unit="x",
        n=20,
    )


@pytest.mark.parametrize("evidence", [c.evidence(), c.on_onnxruntime()], ids=["tensorrt", "onnxruntime"])
@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_line_is_wider_than_the_terminal(evidence, width):
    text = report.run_text(judged(evidence, rule()), width)
    assert max(len(line) for line in text.splitlines()) <= width


def test_the_first_line_is_the_outcome_and_the_last_is_the_next_step():
    lines = report.run_text(judged(c.evidence(), rule()), 80).rstrip("\n").splitlines()
    assert lines[0] == "PASS  crafted/20261130-101112-abcd"
    assert any(line.startswith("next: ") for line in lines[-5:])


def test_the_first_screen_holds_rules_and_ladder():
    screen = "\n".join(report.run_text(judged(c.evidence(), rule()), 80).splitlines()[:24])
    assert "sparse/dense p50 at batch=32 at most 1.1" in screen
    assert "[0.88, 0.93]" in screen
    assert "6 selected disproved for tail: " in screen
    assert "stem: dense (SG303)" in screen


def test_a_broken_rule_is_the_next_step():
    evidence = judged(c.evidence(), rule(RuleResult.FAIL, "the lower bound is above the budget"), outcome=RuleResult.FAIL)
    text = report.run_text(evidence, 80)
    assert text.startswith("FAIL")
    assert "do not release" in text.split("next: ")[-1]


def test_names_are_never_markup_nor_escapes():
    evil = c.layer("body|<img src=x>\x1b[31m")
    export = c.exported(layers=[c.ExportedLayer(layer=evil, proof=c.YES, text="`x`")])
    evidence = judged(c.evidence(train=None, freeze=None, export=export), rule())
    assert "\x1b" not in report.run_text(evidence, 80)
    markdown = report.run_markdown(evidence)
    assert "\x1b" not in markdown
    assert "<img" not in markdown.replace("\\<", "")
    assert "body\\|" in markdown


def test_markdown_names_every_layer_with_its_reason():
    markdown = report.run_markdown(judged(c.evidence(), rule()))
    assert markdown.startswith("# PASS: crafted/20261130")
    for word in ("| body |", "| tail |", "| stem |", "dense-faster", "## Budgets", "## Size", "**Next:**"):
        assert word in markdown


@pytest.mark.parametrize(
    ("kind", "words"), [("latency", "--set measure.seconds=60"), ("quality", "more samples"), ("size", "decide sparse/dense p50")]
)
def test_an_undecided_rule_is_the_next_step_with_what_may_decide_it(kind, words):
    from msgspec.structs import replace

    undecided = replace(rule(RuleResult.INCONCLUSIVE), kind=kind)
    text = report.run_text(judged(c.evidence(), undecided, outcome=RuleResult.INCONCLUSIVE), 80)
    assert words in " ".join(text.split("next: ")[-1].split())


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (
            c.evidence(run=c.run(stages=[c.StageStatus(stage="build", status="failed", error="no GPU")])),
            "mend stage build and run again: no GPU",
        ),
        (c.evidence(), "set budgets in the recipe's gate section"),
    ],
)
def test_a_failed_stage_or_a_run_without_budgets_is_the_next_step(evidence, words):
    text = report.run_text(judged(evidence), 80)
    assert words in " ".join(text.split("next: ")[-1].split())


def test_budgets_that_hold_without_sparse_kernels_lead_to_a_backend_that_has_some():
    text = " ".join(report.run_text(judged(c.on_onnxruntime(), rule()), 80).split("\nnext: ")[-1].split())
    assert text.startswith("the budgets hold: release")
    assert text.endswith("sparsegate run recipes/crafted.yaml --set build.backend=trtexec")


@pytest.mark.parametrize(("higher_is_better", "worst"), [(True, "night"), (False, "day")])
def test_the_worst_slice_of_an_error_is_the_largest(higher_is_better, worst):
    slices = [Slice(axis="light", name="day", value=0.9, n=5), Slice(axis="light", name="night", value=0.1, n=5)]
    head = HeadQuality(head="depth", metric="m", value=0.5, n=10, slices=slices, higher_is_better=higher_is_better)
    rows = quality_rows({"sparse": [Quality(split="test", backend="torch", heads=[head])]})
    assert rows[1][4] == f"worst light: {worst}"
