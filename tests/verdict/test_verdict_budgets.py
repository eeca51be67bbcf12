"""Budgets as data, sizes, energy, baselines, and what the whole says."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pipeline import api
from pipeline.api import judge
from pipeline.errors import InputError
from pipeline.records import io
from pipeline.records.baseline import Baseline
from pipeline.records.evidence import Evidence
from pipeline.records.measurement import Conditions, Energy, Estimate
from pipeline.verdict.comparable import ratio_of
from pipeline.verdict.decision import at_least, at_most

ARMS = {"sparse": 4.0, "dense": 4.0, "dense@again": 4.0}
LATENCY = {"kind": "latency", "over": "dense", "at_most": 1.05}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"kind": "speed"}, "not a usable rule"),
        ({"kind": "latency"}, "needs at_most"),
        ({"kind": "latency", "at_most": "fast"}, "not a usable rule"),
        ({"kind": "latency", "at_most": 1, "colour": "red"}, "not a usable rule"),
        ({"kind": "quality"}, "needs drop_at_most or at_least"),
        ({"kind": "rungs", "at_least": 1}, "needs rung"),
        ({"kind": "rungs", "rung": "selected"}, "needs at_least or layers"),
        ({"kind": "size", "at_most": 1}, "needs size"),
        ({"kind": "quality", "at_least": "all"}, "means nothing"),
        *(
            ({"kind": "rungs", "rung": "exported", "at_least": number}, "no number of layers")
            for number in (-5, 0, 0.5, 2.9, math.inf, math.nan)
        ),
    ],
)
def test_a_rule_that_says_nothing_is_refused_with_its_number(rule, words):
    with pytest.raises(InputError, match=words) as caught:
        judge(Evidence(), [LATENCY, rule])
    assert "gate rule 2" in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "latency", "over": "sparse", "at_most": 1.05},
        {"kind": "latency", "arm": "sparse#2", "over": "sparse#2", "at_most": 1.05},
        {"kind": "size", "size": "file", "over": "sparse", "at_most": 1},
        {"kind": "energy", "over": "sparse", "at_most": 1},
        {"kind": "quality", "over": "sparse", "drop_at_most": 0.01},
        {"kind": "quality", "arm": "dense", "drop_at_most": 0.01},
    ],
)
def test_an_arm_is_not_held_against_itself(rule):
    with pytest.raises(InputError, match="held against itself") as caught:
        judge(Evidence(), [LATENCY, rule])
    assert "gate rule 2" in str(caught.value) and "next: " in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({**LATENCY, "drop_at_most": 0.01}, "drop_at_most"),
        ({**LATENCY, "layers": ["fc*"]}, "layers"),
        ({"kind": "quality", "drop_at_most": 0.01, "at_most": 1}, "at_most"),
        ({"kind": "quality", "drop_at_most": 0.01, "quantile": "p99"}, "quantile"),
        ({"kind": "rungs", "rung": "frozen", "at_least": 1, "over": "dense"}, "over"),
        ({"kind": "stability", "at_least": 2}, "at_least"),
        ({"kind": "size", "size": "file", "at_most": 9, "batch": 1}, "batch"),
        ({"kind": "energy", "at_most": 9, "metric": "request"}, "metric"),
    ],
)
def test_a_field_that_a_kind_does_not_read_is_refused(rule, field):
    with pytest.raises(InputError, match=f"does not read `{field}`"):
        judge(Evidence(), [rule])


def test_fields_with_their_defaults_are_as_absent_ones():
    from pipeline.recipe.schema import Rule as RecipeRule
    from pipeline.verdict.budget import parse

    whole = RecipeRule(kind="size", size="file", at_most=9.0).model_dump(mode="json")
    assert "quantile" in whole and "layers" in whole
    assert parse([whole]) == parse([{"kind": "size", "size": "file", "at_most": 9.0}])


def test_alpha_is_checked():
    with pytest.raises(InputError, match="alpha"):
        judge(Evidence(), [], alpha=0.7)


def test_every_kind_of_the_recipe_is_a_row_of_the_table_with_the_same_fields():
    from pipeline.recipe.schema import Rule as RecipeRule
    from pipeline.verdict.budget import NEEDS, Rule
    from pipeline.verdict.rules import KINDS

    kinds = RecipeRule.model_fields["kind"].annotation.__args__
    assert set(kinds) == set(KINDS) == set(NEEDS)
    assert set(RecipeRule.model_fields) == {field.name for field in msgspec.structs.fields(Rule)}


def test_without_rules_there_is_nothing_to_pass():
    verdict = judge(Evidence(), [])
    assert verdict.outcome == "inconclusive"
    assert "No rule was given" in verdict.notes[0]


BOUND = st.one_of(st.none(), st.floats(0.1, 10))


@given(BOUND, BOUND, st.floats(0.1, 10))
def test_an_interval_never_passes_and_fails(low, high, budget):
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high)
    passes, fails = at_most(low, high, budget) == "pass", at_most(low, high, budget) == "fail"
    assert not (passes and fails)
    assert not passes or (high is not None and high < budget)
    assert not fails or (low is not None and low > budget)
    assert (at_least(low, high, budget) == "fail") == (high is not None and high < budget and not (low is not None and low >= budget))


def test_ids_are_unique_in_a_verdict(bench):
    size = {"kind": "size", "size": "file"}
    rows = judge(bench.evidence(), [{**size, "at_most": budget} for budget in (1, 2, 3)]).rules
    assert [row.id for row in rows] == ["size:sparse:file", "size:sparse:file#2", "size:sparse:file#3"]


def test_sizes_are_facts(bench):
    evidence = bench.evidence()
    size = {"kind": "size", "size": "file"}
    rows = judge(
        evidence,
        [
            {**size, "at_most": 900},
            {**size, "at_most": 899},
            {**size, "over": "dense", "at_most": 0.9},
            {**size, "size": "moon", "at_most": 1},
        ],
    ).rules
    assert [row.outcome for row in rows] == ["pass", "fail", "pass", "inconclusive"]
    assert "known sizes: file" in rows[3].needs


def test_energy_where_it_was_measured(bench):
    def estimate(value):
        return Estimate(value=value, low=value * 0.98, high=value * 1.02, confidence=0.9, n=50)

    energy = [
        Energy(arm=arm, shape="batch=8", millijoules=estimate(value), how="NVML") for arm, value in (("sparse", 80.0), ("dense", 100.0))
    ]
    rule = {"kind": "energy", "over": "dense", "at_most": 0.9}
    assert judge(bench.evidence(energy=energy), [rule]).rules[0].outcome == "pass"
    assert judge(bench.evidence(energy=energy), [{"kind": "energy", "at_most": 70}]).rules[0].outcome == "fail"
    assert judge(bench.evidence(), [rule]).rules[0].outcome == "inconclusive"
    made_up = judge(bench.evidence(energy=energy, conditions=Conditions(backend="trtexec", device="d", simulated="a stand-in")), [rule])
    assert made_up.rules[0].outcome == "inconclusive"
    assert "a stand-in" in made_up.rules[0].why
    wrong = Conditions(
        backend="tensorrt", device="d", warnings=["sparse does not compute what twin does: 3 comparisons fail, by up to 0.4"]
    )
    for one, outcome in ((rule, "inconclusive"), ({"kind": "energy", "arm": "dense", "at_most": 110}, "pass")):
        assert judge(bench.evidence(energy=energy, conditions=wrong), [one]).rules[0].outcome == outcome
    wide = [structs.replace(one, millijoules=structs.replace(one.millijoules, confidence=0.5)) for one in energy]
    looser = judge(bench.evidence(energy=wide), [rule]).rules[0]
    assert looser.outcome == "inconclusive"
    assert "error of 0.25 per bound" in looser.why


@pytest.mark.parametrize(
    ("conditions", "counts_none"),
    [
        (Conditions(backend="onnxruntime", device="a processor"), True),
        (Conditions(backend="trtexec", device="an Orin", unobserved=["clocks", "energy"]), True),
        (Conditions(backend="tensorrt", device="an A30", unobserved=["energy: other processes used the GPU"]), False),
        (Conditions(backend="tensorrt", device="an A30"), False),
    ],
)
def test_an_energy_rule_names_the_backend_that_counts_none(bench, conditions, counts_none):
    row = judge(bench.evidence(conditions=conditions), [{"kind": "energy", "over": "dense", "at_most": 0.9}]).rules[0]
    assert row.outcome == "inconclusive"
    assert (f"the backend {conditions.backend} on {conditions.device} counts none" in row.why) is counts_none
    assert ("device that counts its energy" in row.needs) is counts_none


def test_the_whole_counts_its_errors(bench, made_samples, made_predictions):
    evidence = bench.evidence(samples=made_samples(ARMS), predictions={a: made_predictions() for a in ("sparse", "dense")})
    verdict = judge(evidence, [LATENCY, {"kind": "quality", "drop_at_most": 0.02}, {"kind": "size", "size": "file", "at_most": 1}])
    assert verdict.outcome == "fail"
    assert "2 rules rest on samples" in verdict.notes[0]
    assert "fails wrongly with at most 0.1" in verdict.notes[0]


# ---- baselines -------------------------------------------------------------------------------------------------------


def stored(bench, tmp_path, evidence, **more):
    verdict = judge(evidence, [LATENCY])
    from pipeline import judging

    path = tmp_path / "baselines" / "v1.json"
    notes = judging.save_baseline(evidence, verdict, path, arm="sparse", anew=more.get("anew", False))
    return path, notes


AGAINST = {"kind": "latency", "over": "baseline", "at_most": 1.05}


def test_a_baseline_is_small_and_a_later_run_is_held_against_it(bench, tmp_path, made_samples):
    path, _ = stored(bench, tmp_path, bench.evidence(samples=made_samples(ARMS)))
    assert path.stat().st_size < 20_000
    baseline = io.read(path, Baseline)
    for now, outcome in ((4.0, "pass"), (4.6, "fail"), (4.2, "inconclusive")):
        verdict = judge(bench.evidence(samples=made_samples({**ARMS, "sparse": now}, seed=7)), [AGAINST], baseline=baseline)
        row = verdict.rules[0]
        assert row.outcome == outcome
        assert row.label == "deployment comparison"
        assert row.value == pytest.approx(now / 4.0, rel=0.01)
        assert verdict.baseline == "v1"


@pytest.mark.parametrize(
    "change",
    [
        {"device": "another"},
        {"backend": "tensorrt"},
        {"settings": {"threads": "2"}},
        {"settings": {"threads": "1", "graph": "on"}},
        {"settings": {}},
    ],
)
def test_other_conditions_are_not_compared(bench, tmp_path, made_samples, change):
    path, _ = stored(bench, tmp_path, bench.evidence(samples=made_samples(ARMS)))
    base = {"backend": "onnxruntime", "device": "cpu", "settings": {"threads": "1"}}
    evidence = bench.evidence(samples=made_samples(ARMS), conditions=Conditions(**{**base, **change}))
    row = judge(evidence, [AGAINST], baseline=io.read(path, Baseline)).rules[0]
    assert row.outcome == "inconclusive"
    assert "not comparable with the baseline" in row.why


@pytest.mark.parametrize("key", ["tensorrt", "precision", "model"])
def test_another_deployment_may_differ_and_is_labelled(bench, tmp_path, made_samples, key):
    path, _ = stored(bench, tmp_path, bench.evidence(samples=made_samples(ARMS)))
    conditions = Conditions(backend="onnxruntime", device="cpu", settings={"threads": "1", key: "new"})
    row = judge(
        bench.evidence(samples=made_samples(ARMS, seed=9), conditions=conditions), [AGAINST], baseline=io.read(path, Baseline)
    ).rules[0]
    assert (row.outcome, row.label) == ("pass", "deployment comparison")


def test_other_shapes_are_not_compared(bench, tmp_path, made_samples):
    path, _ = stored(bench, tmp_path, bench.evidence(samples=made_samples(ARMS)))
    data = json.loads(path.read_text())
    for entry in data["latency"]:
        entry["inputs"] = {"x": [8, 5]}
    changed = io.decode(json.dumps(data).encode(), Baseline)
    assert "other input shapes" in judge(bench.evidence(samples=made_samples(ARMS)), [AGAINST], baseline=changed).rules[0].why


def test_without_a_baseline_the_rule_says_so(bench, made_samples):
    row = judge(bench.evidence(samples=made_samples(ARMS)), [AGAINST]).rules[0]
    assert "no baseline was given" in row.why


def test_a_baseline_only_gets_tighter(bench, tmp_path, made_samples):
    def p50(path):
        return next(e.estimate.value for e in io.read(path, Baseline).latency if e.quantile == "p50")

    path, _ = stored(bench, tmp_path, bench.evidence(samples=made_samples(ARMS)))
    first = p50(path)
    _, notes = stored(bench, tmp_path, bench.evidence(samples=made_samples({**ARMS, "sparse": 4.1}, seed=2)))
    assert p50(path) == first
    assert "nothing was beaten" in notes[0]
    _, notes = stored(bench, tmp_path, bench.evidence(samples=made_samples({**ARMS, "sparse": 3.5}, seed=3)))
    assert p50(path) == pytest.approx(3.5, rel=0.02)
    assert any("was 4" in note for note in notes)
    stored(bench, tmp_path, bench.evidence(samples=made_samples({**ARMS, "sparse": 4.1}, seed=2)), anew=True)
    assert p50(path) == pytest.approx(4.1, rel=0.02)


def test_a_run_that_does_not_pass_becomes_no_baseline(bench, tmp_path, made_samples):
    with pytest.raises(InputError, match="this run is fail"):
        stored(bench, tmp_path, bench.evidence(samples=made_samples({**ARMS, "sparse": 5.0})))


def test_a_baseline_of_other_conditions_is_not_tightened(bench, tmp_path, made_samples):
    stored(bench, tmp_path, bench.evidence(samples=made_samples(ARMS)))
    with pytest.raises(InputError, match="cannot be tightened"):
        stored(bench, tmp_path, bench.evidence(samples=made_samples(ARMS), conditions=Conditions(backend="onnxruntime", device="new")))


POSITIVE = st.floats(0.1, 100)


@given(POSITIVE, POSITIVE, st.floats(1.001, 1.5), st.floats(1.001, 1.5))
def test_a_ratio_of_two_estimates_is_wider_than_either(now, then, spread_now, spread_then):
    a = Estimate(value=now, low=now / spread_now, high=now * spread_now, confidence=0.9, n=50)
    b = Estimate(value=then, low=then / spread_then, high=then * spread_then, confidence=0.9, n=40)
    found = ratio_of(a, b)
    half = math.log(found.high / found.value)
    assert found.value == pytest.approx(now / then)
    assert half == pytest.approx(math.log(found.value / found.low))
    assert max(math.log(spread_now), math.log(spread_then)) <= half <= math.log(spread_now) + math.log(spread_then)


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "x" * 70])
def test_names_that_are_no_file_names_are_refused(name, tmp_path):
    from pipeline.run.workspace import baseline_path

    with pytest.raises(InputError, match="cannot name a baseline"):
        baseline_path(tmp_path, name)


def test_the_api_is_public():
    import pipeline

    assert pipeline.judge is api.judge
    assert pipeline.bench is api.bench
