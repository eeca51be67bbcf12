"""Reports of the real quickstart run: the first screen answers, every number is a record's, every layer can be explained."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from test_numbers_in_reports import counts_of, records_of, strangers

from pipeline import api, report
from pipeline.cli import group
from pipeline.records.rung import Rung, Step
from pipeline.report.story_view import story_text

pytestmark = pytest.mark.xdist_group("quickstart")


@pytest.fixture(scope="module")
def evidence(quickstart_run):
    return api.judged(quickstart_run.folder)


def invoke(*words):
    result = CliRunner().invoke(group, [*map(str, words)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_the_first_screen_holds_the_outcome_the_rules_and_the_ladder(quickstart_run, evidence):
    lines = invoke("report", quickstart_run.folder).splitlines()
    screen = "\n".join(lines[:36])
    assert lines[0].split()[0] == evidence.gate.outcome.value.upper()
    for rule in evidence.gate.rules:
        assert rule.text.split()[0] in screen
    for rungs in evidence.gate.ladder:
        assert rungs.of in "\n".join(lines)
    assert max(len(line) for line in lines if "sparsegate " not in line) <= 80  # a command stands on one line, whatever its paths
    assert any(line.startswith("next: ") for line in lines[-12:])


def test_every_number_is_a_records(evidence):
    known = [*records_of(evidence), counts_of(evidence)]
    assert strangers(report.run_text(evidence, 200), *known) == []
    assert strangers(report.run_markdown(evidence), *known) == []


def test_the_ladder_reaches_rung_3_and_rungs_4_to_6_do_not_apply(evidence):
    masked = [item for item in evidence.gate.ladder if item.decision.startswith("masked")]
    assert masked
    for item in masked:
        assert [item.steps[step] for step in (Step.MASKED, Step.FROZEN, Step.EXPORTED)] == [Rung.YES] * 3
        assert [item.steps[step] for step in (Step.ELIGIBLE, Step.TIMED, Step.SELECTED)] == [Rung.NOT_APPLICABLE] * 3


def test_every_layer_has_a_story_that_fits_a_screen(evidence):
    from pipeline.verdict.joining import weighted_layers
    from pipeline.verdict.story import tell

    for layer in weighted_layers(evidence):
        story = tell(evidence, layer.id)
        assert strangers(story_text(story, 200), story) == []
        assert len(story_text(story, 100).splitlines()) <= 24


def test_a_run_does_not_differ_from_itself(quickstart_run):
    found = json.loads(invoke("diff", quickstart_run.folder, quickstart_run.folder, "--format", "json"))
    assert (found["changes"], found["rungs"], found["environment"]) == ([], [], [])
    assert found["figures"]


def test_findings_name_this_run_in_their_commands(quickstart_run, evidence):
    texts = " ".join(finding.next for finding in evidence.gate.findings)
    assert "RUN" not in texts.split()
    assert "SG520" in {finding.id for finding in evidence.gate.findings}
