"""Every number that a report prints equals one in the record that it prints: a walk over all of them, with random records.

A printed number is found in a record when some value of the record, shown as the printers show numbers, reads the same;
digits inside texts and names of the record count as they stand there.
"""

from __future__ import annotations

import json
import re

import crafted_run as c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline import report
from pipeline.records import io
from pipeline.records.evidence import RECORD_OF_STAGE
from pipeline.records.measurement import Size
from pipeline.records.verdict import JudgedRule, RuleResult, Verdict
from pipeline.report.differences import diff_markdown, diff_text
from pipeline.report.next_step import UNDECIDED
from pipeline.report.story_view import story_markdown, story_text
from pipeline.report.words import number
from pipeline.verdict import diagnosis, ladder
from pipeline.verdict.diff_runs import diff_runs
from pipeline.verdict.story import tell

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
FIXED = {str(rung) for rung in range(1, 10)} | {"2:4", "0"} | set(NUMBER.findall(" ".join(UNDECIDED.values())))
"""Rungs' numbers, and what the printers' own words say."""


def values(document):
    """All numbers of a JSON document as the printers show them, and all digits inside its texts; lengths of lists."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from values(key)
            yield from values(value)
    elif isinstance(document, list):
        yield number(len(document))
        for value in document:
            yield from values(value)
    elif isinstance(document, str):
        yield from NUMBER.findall(document)
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        yield from {number(document), number(document * 100)}


def strangers(text, *records):
    plain = re.sub(r"\\([\\`*_\[\]<>|#~])", r"\1", text)
    plain = re.sub(r"\n {2,8}", " ", plain)  # paragraphs that were wrapped
    known = {found for record in records for found in values(json.loads(io.encode(record)))} | FIXED
    return [found for found in NUMBER.findall(plain) if found not in known and found.lstrip("+") not in known]


def counts_of(evidence):
    """The run's folder, and counts that a report states of the ladder: layers, layers dense by decision, layers not named."""
    rows = [item for item in evidence.gate.ladder if "masked" in item.steps]
    return Verdict(outcome=RuleResult.PASS, rules=[], notes=[str(evidence.folder), *(f"{many} " for many in range(len(rows) + 1))])


ARMS = ("sparse", "dense")
floats = st.floats(0.0001, 5000, allow_nan=False)


@st.composite
def runs(draw):
    def passes():
        return draw(st.lists(floats, min_size=3, max_size=5))

    low, value, high = sorted(draw(st.lists(floats, min_size=3, max_size=3)))
    measured = c.measurement(
        ratios=[c.ratio(value, low, high), c.ratio(draw(floats), low, high, over="twin", control=draw(st.booleans()))],
        timings=[c.timing(arm, draw(floats), samples=draw(st.integers(1, 10**6))) for arm in ARMS],
        layers=[c.layer_time(arm, item, *passes()) for arm in ARMS for item in (c.BODY, c.TAIL)],
        sizes=[Size(arm=arm, name="file", bytes=draw(st.integers(0, 10**13)), question="?") for arm in ARMS],
        quality={arm: [c.quality(arm, draw(st.floats(0, 1)), {"3": draw(st.floats(0, 1))})] for arm in ARMS},
    )
    outcome, many = draw(st.sampled_from(RuleResult)), draw(st.integers(0, 999))
    rule = JudgedRule(id="r", kind="latency", outcome=outcome, text="a rule", why="so", value=value, low=low, high=high, n=many)
    evidence = c.evidence(measure=measured)
    verdict = Verdict(outcome=rule.outcome, rules=[rule], ladder=ladder.build(evidence), findings=diagnosis.diagnose(evidence))
    return replace(evidence, gate=verdict)


def records_of(evidence):
    records = [evidence.run, *(getattr(evidence, stage) for stage in RECORD_OF_STAGE)]
    return [record for record in records if record is not None]


@settings(max_examples=40, deadline=None)
@given(runs())
def test_every_number_of_a_run_report_is_the_records(evidence):
    known = [*records_of(evidence), counts_of(evidence)]
    assert strangers(report.run_text(evidence, 200), *known) == []
    assert strangers(report.run_markdown(evidence), *known) == []


@settings(max_examples=40, deadline=None)
@given(runs(), st.sampled_from(["body", "tail", "stem"]))
def test_every_number_of_a_story_is_the_records(evidence, name):
    story = tell(evidence, name)
    assert strangers(story_text(story, 200), story) == []
    assert strangers(story_markdown(story), story) == []


@settings(max_examples=40, deadline=None)
@given(runs(), runs())
def test_every_number_of_a_diff_is_the_records(a, b):
    found = diff_runs(a, b, "sparse")
    deltas = Verdict(outcome=RuleResult.PASS, rules=[], notes=[number(change.delta_ms) for change in found.changes])
    assert strangers(diff_text(found, 300), found, deltas) == []
    assert strangers(diff_markdown(found), found, deltas) == []


@pytest.mark.parametrize("text", ["latency 0.912", "12 layers too many 4242", "size 1e-07"])
def test_the_walk_sees_a_number_that_no_record_holds(text):
    assert strangers(text, Verdict(outcome=RuleResult.PASS, rules=[], notes=["12"]))
