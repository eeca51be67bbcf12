"""Quality budgets: paired by sample, honest about small slices, and only for the engine that is released."""

from __future__ import annotations

import msgspec
import pytest

from pipeline.api import judge

DROP = {"kind": "quality", "drop_at_most": 0.01}


def only(verdict):
    assert len(verdict.rules) == 1
    return verdict.rules[0]


@pytest.mark.parametrize(
    ("n", "worse", "better", "outcome"),
    [
        (360, 0, 0, "pass"),
        (360, 1, 1, "pass"),
        (900, 3, 1, "pass"),
        (900, 40, 5, "fail"),
        (360, 6, 2, "inconclusive"),
        (60, 0, 0, "inconclusive"),
    ],
)
def test_one_point_is_decided_by_the_samples_that_changed(bench, made_predictions, n, worse, better, outcome):
    sparse, dense = made_predictions(n, wrong=range(worse)), made_predictions(n, wrong=range(worse, worse + better))
    row = only(judge(bench.evidence(predictions={"sparse": sparse, "dense": dense}), [DROP]))
    assert row.outcome == outcome
    assert row.value == pytest.approx((worse - better) / n)
    assert f"{worse} of {n} samples got worse, {better} better" in row.why
    assert (row.needs is None) == (outcome != "inconclusive")


def test_the_worst_slice_decides_and_small_slices_say_what_they_need(bench, made_predictions):
    n = 5000
    bad = [i for i in range(n) if i % 10 == 3][:60]
    evidence = bench.evidence(predictions={"sparse": made_predictions(n, wrong=bad), "dense": made_predictions(n)})
    overall, tight, wide = judge(
        evidence,
        [{**DROP, "drop_at_most": 0.02}, {**DROP, "slice": "worst", "drop_at_most": 0.02}, {**DROP, "slice": "worst", "drop_at_most": 0.2}],
    ).rules
    assert overall.outcome == "pass"
    assert tight.outcome == "fail"
    assert "class=3" in tight.why
    assert tight.value == pytest.approx(0.12)
    assert wide.outcome == "pass"
    named = only(judge(evidence, [{**DROP, "slice": "class=4", "drop_at_most": 0.02}]))
    assert named.outcome == "pass"
    assert named.n == 500
    small = bench.evidence(predictions={"sparse": made_predictions(360), "dense": made_predictions(360)})
    row = only(judge(small, [{**DROP, "slice": "worst", "drop_at_most": 0.02}]))
    assert row.outcome == "inconclusive"
    assert "samples per slice" in row.needs


def test_a_slice_or_head_that_does_not_exist_is_named(bench, made_predictions):
    evidence = bench.evidence(predictions={"sparse": made_predictions(), "dense": made_predictions()})
    assert "no slice is called 'colour=red'" in only(judge(evidence, [{**DROP, "slice": "colour=red"}])).why
    assert "no head is called 'boxes'" in only(judge(evidence, [{**DROP, "head": "boxes"}])).why


def test_quality_of_another_backend_never_passes(bench, made_predictions):
    predictions = {"sparse": made_predictions(), "dense": made_predictions()}
    evidence = bench.evidence(predictions=predictions, backend="tensorrt")
    assert only(judge(evidence, [DROP])).outcome == "pass"
    other = {arm: [msgspec.structs.replace(q, backend="torch") for q in found] for arm, found in evidence.measure.quality.items()}
    changed = msgspec.structs.replace(evidence, measure=msgspec.structs.replace(evidence.measure, quality=other))
    row = only(judge(changed, [DROP]))
    assert row.outcome == "inconclusive"
    assert "evaluated with torch" in row.why


def test_different_samples_are_not_compared(bench, made_predictions):
    evidence = bench.evidence(predictions={"sparse": made_predictions(500), "dense": made_predictions(500, classes=5)})
    assert "not evaluated on the same samples" in only(judge(evidence, [DROP])).why


def test_an_absolute_level(bench, made_predictions):
    evidence = bench.evidence(predictions={"sparse": made_predictions(1000, wrong=range(30))})
    rows = judge(evidence, [{"kind": "quality", "at_least": level} for level in (0.95, 0.97, 0.99)]).rules
    assert [row.outcome for row in rows] == ["pass", "inconclusive", "fail"]
    assert rows[0].value == pytest.approx(0.97)


def test_missing_predictions_say_so(bench, made_predictions):
    assert "no quality of sparse" in only(judge(bench.evidence(), [DROP])).why
    assert "no quality of dense" in only(judge(bench.evidence(predictions={"sparse": made_predictions()}), [DROP])).why


def with_nonfinite(evidence, arm, count, split="test"):
    (one,) = evidence.measure.quality[arm]
    heads = [msgspec.structs.replace(head, nonfinite=count) for head in one.heads]
    quality = {**evidence.measure.quality, arm: [msgspec.structs.replace(one, heads=heads, split=split)]}
    return msgspec.structs.replace(evidence, measure=msgspec.structs.replace(evidence.measure, quality=quality))


def test_an_engine_with_nan_outputs_is_never_released(bench, made_predictions):
    fine = bench.evidence(predictions={"sparse": made_predictions(900), "dense": made_predictions(900)})
    size = {"kind": "size", "size": "file", "at_most": 1000}
    assert judge(fine, [size]).outcome == "pass"
    verdict = judge(with_nonfinite(fine, "sparse", 1), [size])
    assert verdict.outcome == "fail"
    assert verdict.rules[-1].id == "release:sparse:nonfinite-outputs"
    assert "1 of 900 samples" in verdict.rules[-1].why
    assert judge(with_nonfinite(fine, "dense", 900), [size]).outcome == "pass"


@pytest.mark.parametrize("arm", ["sparse", "dense"])
def test_no_quality_is_read_from_nan_outputs(bench, made_predictions, arm):
    fine = bench.evidence(predictions={"sparse": made_predictions(900), "dense": made_predictions(900)})
    assert only(judge(fine, [DROP])).outcome == "pass"
    loss, level = judge(with_nonfinite(fine, arm, 900), [{**DROP, "at_least": 0.5}]).rules[:2]
    assert loss.outcome == "inconclusive"
    assert f"900 of 900 samples have a NaN or infinite output of {arm}" in loss.why
    assert level.outcome == ("inconclusive" if arm == "sparse" else "pass")
