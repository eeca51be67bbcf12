"""A record with a field removed or changed is refused, or the verdict gives the reason; untouched ones judge alike for ever."""

from __future__ import annotations

import copy
import json

import msgspec
import pytest

from pipeline import api
from pipeline.api import judge
from pipeline.errors import InputError, SparsegateError, TamperedError
from pipeline.records import io
from pipeline.records.evidence import read_evidence
from pipeline.records.measurement import Measurement

ARMS = {"sparse": 4.0, "dense": 4.0, "dense@again": 4.0}
RULES = [
    {"kind": "latency", "over": "dense", "at_most": 1.05},
    {"kind": "quality", "drop_at_most": 0.02},
    {"kind": "size", "size": "file", "at_most": 1000},
]


@pytest.fixture
def evidence(bench, made_samples, made_predictions):
    return bench.evidence(samples=made_samples(ARMS, rounds=80), predictions={arm: made_predictions() for arm in ("sparse", "dense")})


def paths(value, before=()):
    """Every place in a JSON document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*before, key)
            yield from paths(inner, (*before, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield (*before, at)
            yield from paths(inner, (*before, at))


def parent(document, path):
    for step in path[:-1]:
        document = document[step]
    return document


OTHER = {str: "changed", int: 7, float: 123.5, bool: True, list: [], dict: {}, type(None): None}


@pytest.mark.parametrize("how", ["remove", "change"])
def test_no_place_of_the_record_can_be_touched_without_a_word(evidence, how):
    """Walks every field: an error that names the record, the same verdict (the field decides nothing), or one with a reason."""
    whole = json.loads(io.encode(evidence.measure))
    sure = io.encode(judge(evidence, RULES))
    assert b'"outcome": "pass"' in sure
    rows = [(row.id, row.outcome, row.value, row.low, row.high) for row in judge(evidence, RULES).rules if row.kind != "size"]
    seen = {"refused": 0, "same": 0, "reason": 0}
    for path in list(paths(whole)):
        document = copy.deepcopy(whole)
        place = parent(document, path)
        if how == "remove":
            del place[path[-1]]
        else:
            place[path[-1]] = OTHER[type(place[path[-1]])]
        try:
            record = io.decode(json.dumps(document).encode(), Measurement, where="measure.json")
            verdict = judge(msgspec.structs.replace(evidence, measure=record), RULES)
        except SparsegateError as error:
            assert str(error)
            seen["refused"] += 1
            continue
        if verdict.outcome == "pass":
            seen["same"] += 1
            decided = [(row.id, row.outcome, row.value, row.low, row.high) for row in verdict.rules if row.kind != "size"]
            assert decided == rows, path
        else:
            seen["reason"] += 1
            assert all(row.why for row in verdict.rules if row.outcome != "pass"), path
    assert min(seen.values()) > 3, seen


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("samples",), None, "no latency samples were kept"),
        (("timings",), [], "no latency of sparse was measured"),
        (("quality", "sparse", 0, "predictions"), None, "no predictions of sparse were kept"),
        (("quality", "sparse", 0, "backend"), "torch", "evaluated with torch"),
        (("quality", "sparse", 0, "split"), "select", "evaluated on select"),
        (("quality", "dense"), [], "no quality of dense"),
        (("sizes",), [], "no size 'file'"),
        (("conditions", "simulated"), "a replay", "not taken from a running engine"),
    ],
)
def test_what_is_missing_is_said(evidence, path, value, words):
    document = json.loads(io.encode(evidence.measure))
    parent(document, path)[path[-1]] = value
    record = io.decode(json.dumps(document).encode(), Measurement)
    verdict = judge(msgspec.structs.replace(evidence, measure=record), RULES)
    assert verdict.outcome == "inconclusive"
    assert any(words in row.why for row in verdict.rules)


def test_a_digest_that_does_not_match_stops_the_judge(evidence):
    document = json.loads(io.encode(evidence.measure))
    document["samples"]["sha256"] = "1" * 64
    changed = msgspec.structs.replace(evidence, measure=io.decode(json.dumps(document).encode(), Measurement))
    with pytest.raises(TamperedError, match=r"samples\.npz"):
        judge(changed, RULES)


def test_a_run_judged_again_gives_the_bytes_of_its_own_gate(bench, evidence):
    folder = bench.run(evidence, RULES)
    first = io.encode(judge(evidence, RULES))
    assert io.encode(api.gate(folder)) == first
    io.write(folder / "records" / "gate.json", api.gate(folder))
    assert io.encode(api.gate(folder)) == first
    assert io.encode(read_evidence(folder).gate) == first


def test_a_run_without_budgets_asks_for_a_recipe(bench, evidence):
    folder = bench.run(evidence, RULES)
    data = json.loads((folder / "run.json").read_text())
    del data["sections"]["gate"]
    (folder / "run.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="no gate section"):
        api.gate(folder)
