"""`explain` tells one layer's story on one screen, by whichever name a person has for the layer."""

from __future__ import annotations

import json

import crafted_run as c
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from pipeline.cli import group
from pipeline.errors import InputError
from pipeline.records import io
from pipeline.records.rung import Step
from pipeline.records.verdict import RuleResult, Verdict
from pipeline.report.story_view import story_text
from pipeline.verdict import ladder
from pipeline.verdict.story import NEXT, STAGE_OF, tell


@pytest.mark.parametrize("name", ["tail", "tail.weight", "/tail/Conv", "/tail/Conv + tail/Relu"])
def test_a_layer_is_found_by_any_of_its_names(name):
    assert tell(c.evidence(), name).layer.id == "tail"


def test_an_unknown_layer_names_the_nearest():
    with pytest.raises(InputError, match="no layer 'tial'") as caught:
        tell(c.evidence(), "tial")
    assert "tail" in caught.value.hint


def test_a_name_of_several_layers_is_refused_with_their_ids():
    shared = [replace(item, layer=replace(item.layer, initializer="val_0")) for item in c.exported().layers]
    with pytest.raises(InputError, match="several layers: stem, body, tail"):
        tell(c.evidence(export=c.exported(layers=shared)), "val_0")


@pytest.mark.parametrize("name", ["stem", "body", "tail"])
def test_the_story_fits_one_screen(name):
    lines = story_text(tell(c.evidence(), name), 80).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"{name}: ")
    assert any(line.startswith("next: ") for line in lines[-2:])


def test_it_goes_from_weights_to_request():
    text = " ".join(story_text(tell(c.evidence(), "tail"), 80).split())
    rungs = ("4 eligible", "6 selected", "7 faster-layer", "8 faster-engine", "9 faster-request")
    told = [text.index(words) for words in ("masked (SG301)", "1 masked", *rungs)]
    assert told == sorted(told)
    for words in ("best sparse 0.051 ms", "best dense 0.043 ms", "timed 2 sparse, 5 dense", "share 0.4", "dense-faster"):
        assert words in text


def test_rungs_stand_in_order_also_when_they_come_from_a_stored_record():
    verdict = Verdict(outcome=RuleResult.PASS, rules=[], ladder=ladder.build(c.evidence()))
    stored = replace(c.evidence(), gate=io.decode(io.encode(verdict), Verdict))
    assert [rung.step for rung in tell(stored, "body").rungs] == list(Step)


def test_the_share_is_of_all_profiled_layers_in_the_same_passes():
    (sparse, dense) = tell(c.evidence(), "body").times
    assert (sparse.ms, sparse.engine_ms, sparse.share) == (0.30, 0.50, 0.6)
    assert (dense.arm, dense.ms, dense.engine_ms) == ("dense", 0.40, pytest.approx(0.60))


@pytest.mark.parametrize("step", list(STAGE_OF))
def test_a_stage_that_did_not_run_is_the_next_step(step):
    gone = c.evidence(**{STAGE_OF[step]: None})
    story = tell(gone, "body")
    assert STAGE_OF[story.ladder.missed] == STAGE_OF[step]
    assert "sparsegate run recipes/crafted.yaml" in story.next
    assert STAGE_OF[step] in story.next


def test_every_rung_that_can_be_missed_has_its_next_step():
    assert set(NEXT) == {*STAGE_OF, None}
    assert "train.masks.exclude" in tell(c.evidence(), "tail").next
    assert tell(c.evidence(), "body").ladder.missed is None
    assert Step.FASTER_ENGINE not in STAGE_OF


def test_the_command_prints_text_markdown_and_json(tmp_path):
    c.write_run(tmp_path, c.evidence())

    def invoke(*words):
        result = CliRunner().invoke(group, ["explain", str(tmp_path), "tail", *words])
        assert result.exit_code == 0, result.exception
        return result.output

    assert invoke().startswith("tail: Linear [512, 256]")
    assert "| tail | 6 selected | NO |" in invoke("--format", "md")
    assert json.loads(invoke("--format", "json"))["schema"] == "sparsegate.story/1"
