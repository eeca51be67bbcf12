"""Latency budgets: decided by the whole interval, guarded by the A/A comparison, refused on unfit measurements."""

from __future__ import annotations

import msgspec
import pytest

from pipeline.api import judge
from pipeline.builders.parity import failures
from pipeline.errors import InputError, TamperedError
from pipeline.gpu_watch import THROTTLES
from pipeline.records.io import encode
from pipeline.records.measurement import Conditions, EngineParity, Reading

DISAGREES = EngineParity(engine="sparse", against="twin", profile=0, shape="opt", probe="random", max_rel=0.4, passed=False)
ARMS = {"sparse": 4.0, "dense": 4.0, "dense@again": 4.0}
RULE = {"kind": "latency", "over": "dense", "at_most": 1.05}


def only(verdict):
    assert len(verdict.rules) == 1
    return verdict.rules[0]


@pytest.mark.parametrize(("sparse", "outcome"), [(3.6, "pass"), (4.0, "pass"), (4.6, "fail"), (4.2, "inconclusive")])
def test_the_whole_interval_decides(bench, made_samples, sparse, outcome):
    evidence = bench.evidence(samples=made_samples({**ARMS, "sparse": sparse}))
    verdict = judge(evidence, [RULE])
    row = only(verdict)
    assert (row.outcome, verdict.outcome) == (outcome, outcome)
    assert row.low < row.value < row.high
    assert row.value == pytest.approx(sparse / 4.0, rel=0.005)
    assert row.control.startswith("A/A dense@again / dense")


def test_an_absolute_budget_is_in_ms(bench, made_samples):
    evidence = bench.evidence(samples=made_samples(ARMS))
    rows = judge(evidence, [{"kind": "latency", "at_most": 4.5}, {"kind": "latency", "at_most": 3.5}]).rules
    assert [row.outcome for row in rows] == ["pass", "fail"]
    assert rows[0].unit == "ms"


def test_without_an_aa_arm_nothing_is_decided(bench, made_samples):
    row = only(judge(bench.evidence(samples=made_samples({"sparse": 3.0, "dense": 4.0})), [RULE]))
    assert row.outcome == "inconclusive"
    assert "A/A" in row.why


def test_arms_that_run_the_same_kernels_serve_as_aa(bench, made_samples):
    samples = made_samples({"sparse": 4.0, "twin": 4.0, "dense": 4.0})
    row = only(judge(bench.evidence(samples=samples, controls=[("sparse", "twin")]), [RULE]))
    assert row.outcome == "pass"
    assert "sparse / twin" in row.control


def test_a_plan_that_differs_from_itself_refuses_everything(bench, made_samples):
    row = only(judge(bench.evidence(samples=made_samples({**ARMS, "sparse": 3.0, "dense@again": 4.2})), [RULE]))
    assert row.outcome == "inconclusive"
    assert "leaves out 1" in row.why


def test_a_decision_that_the_aa_error_could_turn_is_none(bench, made_samples):
    # 0.08 % from the budget: decided alone by a narrow interval, not with the A/A's own width on top
    samples = made_samples({**ARMS, "sparse": 4.0 * 1.05 * 0.9992}, rounds=400, seed=3)
    row = only(judge(bench.evidence(samples=samples), [RULE]))
    assert row.high < 1.05
    assert row.outcome == "inconclusive"
    assert "A/A" in row.why


def test_an_arm_that_computes_something_else_spoils_no_rule_about_others(bench, made_samples):
    of_the_twin = msgspec.structs.replace(DISAGREES, engine="twin", against="onnxruntime")
    conditions = Conditions(backend="onnxruntime", device="cpu", warnings=failures([of_the_twin]))
    evidence = bench.evidence(samples=made_samples({**ARMS, "sparse": 3.0}), conditions=conditions)
    assert only(judge(evidence, [RULE])).outcome == "pass"


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"simulated": "a stand-in trtexec"}, "not taken from a running engine"),
        ({"warnings": ["GPU compute time is unstable, with coefficient of variance = 9.2%."]}, "measurement itself warns"),
        ({"warnings": ["Throughput may be bound by Enqueue Time rather than GPU Compute"]}, "measurement itself warns"),
        ({"warnings": ["Throughput may be bound by host-to-device transfers for the inputs"]}, "measurement itself warns"),
        ({"warnings": ["Using an engine plan file across different models of devices is not recommended"]}, "measurement itself warns"),
        ({"warnings": failures([DISAGREES])}, "sparse does not compute what twin does"),
        *(({"warnings": [f"the GPU was slowed down: {words}"]}, words) for words in THROTTLES.values() if words != "power cap"),
        ({"warnings": ["other processes used the GPU: 17, 23"]}, "17, 23"),
        ({"readings": [Reading(arm="sparse", shape="batch=8", slowdown=["hw_thermal_slowdown"])]}, "slowed itself down"),
        ({"readings": [Reading(arm="dense", shape="batch=8", other_processes=2)]}, "2 other processes"),
        (
            {"readings": [Reading(arm=a, shape="batch=8", clock_mhz=[mhz] * 20) for a, mhz in (("sparse", 1700.0), ("dense", 1500.0))]},
            "1500 MHz",
        ),
    ],
)
def test_unfit_conditions_are_refused_with_the_reason(bench, made_samples, conditions, words):
    evidence = bench.evidence(
        samples=made_samples({**ARMS, "sparse": 3.0}), conditions=Conditions(backend="onnxruntime", device="cpu", **conditions)
    )
    row = only(judge(evidence, [RULE]))
    assert row.outcome == "inconclusive"
    assert words in row.why
    assert row.needs


@pytest.mark.parametrize(
    "conditions",
    [
        {"readings": [Reading(arm="sparse", shape="batch=8", slowdown=["sw_power_cap"])]},
        {"readings": [Reading(arm="sparse", shape="batch=1", slowdown=["hw_thermal_slowdown"])]},
        {"readings": [Reading(arm=a, shape="batch=8", clock_mhz=[1500.0, 1700.0] * 10) for a in ("sparse", "dense")]},
        {"unobserved": ["other processes"]},
    ],
)
def test_harmless_conditions_are_recorded_and_not_refused(bench, made_samples, conditions):
    evidence = bench.evidence(
        samples=made_samples({**ARMS, "sparse": 3.0}), conditions=Conditions(backend="onnxruntime", device="cpu", **conditions)
    )
    verdict = judge(evidence, [RULE])
    assert only(verdict).outcome == "pass"
    assert ("other processes" in " ".join(verdict.notes)) == ("unobserved" in conditions)


def test_a_warning_spoils_only_the_metric_it_is_about(bench, made_samples):
    conditions = Conditions(backend="tensorrt", device="gpu", warnings=["Throughput may be bound by Enqueue Time rather than GPU Compute"])
    samples = made_samples({**ARMS, "sparse": 3.0}, metrics=("host_latency", "gpu_compute"))
    rules = [{**RULE, "metric": "gpu_compute"}, {**RULE, "metric": "host_latency"}]
    rows = judge(bench.evidence(samples=samples, backend="tensorrt", conditions=conditions), rules).rules
    assert [row.outcome for row in rows] == ["pass", "inconclusive"]


def test_an_unsettled_warm_up_is_refused(bench, made_samples):
    samples = made_samples({**ARMS, "sparse": 3.0}, settled={"sparse": True, "dense": False, "dense@again": True})
    assert "never became steady" in only(judge(bench.evidence(samples=samples), [RULE])).why


def test_shapes_that_did_not_run_are_refused(bench, made_samples):
    evidence = bench.evidence(samples=made_samples({**ARMS, "sparse": 3.0}))
    wrong = [msgspec.structs.replace(t, inputs={"x": [1, 4]}) for t in evidence.measure.timings]
    silent = [msgspec.structs.replace(t, inputs={}) for t in evidence.measure.timings]
    for timings, words in ((wrong, "are not those of"), (silent, "does not say which input shapes")):
        changed = msgspec.structs.replace(evidence, measure=msgspec.structs.replace(evidence.measure, timings=timings))
        assert words in only(judge(changed, [RULE])).why
    assert "was measured at batch=64" in only(judge(evidence, [{**RULE, "batch": 64}])).why


def test_tails_with_too_few_samples_say_how_many_it_takes(bench, made_samples):
    evidence = bench.evidence(samples=made_samples({**ARMS, "sparse": 3.0}, rounds=50))
    row = only(judge(evidence, [{**RULE, "quantile": "p99"}]))
    assert row.outcome == "inconclusive"
    assert "1000 are needed" in row.why
    assert (
        only(judge(bench.evidence(samples=made_samples({**ARMS, "sparse": 3.0}, rounds=1500)), [{**RULE, "quantile": "p99"}])).outcome
        == "pass"
    )


def test_judging_again_gives_the_same_bytes(bench, made_samples, made_predictions):
    evidence = bench.evidence(samples=made_samples(ARMS), predictions={"sparse": made_predictions(), "dense": made_predictions()})
    rules = [
        RULE,
        {**RULE, "quantile": "p99"},
        {"kind": "quality", "drop_at_most": 0.01},
        {"kind": "size", "size": "file", "at_most": 1000},
    ]
    assert encode(judge(evidence, rules)) == encode(judge(evidence, rules))


def test_changed_samples_stop_the_judging(bench, made_samples):
    evidence = bench.evidence(samples=made_samples(ARMS))
    path = bench.folder / "measure" / "samples.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(TamperedError, match=r"samples\.npz"):
        judge(evidence, [RULE])
    path.unlink()
    with pytest.raises(InputError, match="gone"):
        judge(evidence, [RULE])


def test_a_claim_about_the_recipe_needs_three_builds_and_holds_their_spread(bench, made_samples):
    one = bench.evidence(samples=made_samples(ARMS))
    assert "needs 3 builds" in only(judge(one, [{**RULE, "claim": "recipe"}])).why
    builds = {"sparse": 3.6, "sparse#2": 3.8, "sparse#3": 4.0, "dense": 4.0, "dense#2": 4.0, "dense#3": 4.0, "dense@again": 4.0}
    evidence = bench.evidence(samples=made_samples(builds, rounds=300))
    rule = {**RULE, "at_most": 1.0}
    recipe, engine = judge(evidence, [rule, {**rule, "claim": "engine"}]).rules
    assert recipe.value == pytest.approx(0.95, rel=0.01)
    assert recipe.n == 3
    assert recipe.outcome == "inconclusive"
    assert engine.outcome == "pass"
    assert recipe.high - recipe.low > 5 * (engine.high - engine.low)
