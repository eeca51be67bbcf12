"""Rungs are judged alone, and the place on the ladder follows from them and nothing else."""

from __future__ import annotations

from itertools import product

import crafted_run as c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.rung import Rung, Step
from pipeline.verdict import ladder
from pipeline.verdict.claims import Claim, placed, together

OWN = {
    Step.MASKED: {"train"},
    Step.FROZEN: {"freeze"},
    Step.EXPORTED: {"export"},
    Step.ELIGIBLE: {"tactics"},
    Step.TIMED: {"tactics"},
    Step.SELECTED: {"tactics"},
    Step.FASTER_LAYER: {"measure"},
}
STAGES = ("train", "freeze", "export", "build", "tactics", "measure")
NAMES_LAYERS = ("train", "freeze", "export")


def rungs_of(kept, name):
    evidence = c.evidence(**{stage: None for stage in STAGES if stage not in kept})
    return next(item for item in ladder.build(evidence) if item.of == name)


@pytest.mark.parametrize("name", ["body", "tail"])
def test_no_record_changes_the_rung_that_another_record_proves(name):
    alone = {step: rungs_of(own | {"export"}, name).steps[step] for step, own in OWN.items()}
    for present in product((False, True), repeat=len(STAGES)):
        kept = {stage for stage, here in zip(STAGES, present, strict=True) if here}
        if not kept & set(NAMES_LAYERS):
            continue
        found = rungs_of(kept, name)
        for step, own in OWN.items():
            assert found.steps[step] is (alone[step] if own <= kept else Rung.UNKNOWN), (kept, step)


claims = st.dictionaries(st.sampled_from(Step), st.sampled_from(Rung).map(lambda rung: Claim(rung, rung.value)), min_size=1)


@given(claims)
def test_the_place_is_the_unbroken_prefix_the_first_miss_and_what_stands_above(made):
    found = placed("x", made)
    order = [step for step in Step if step in made]
    broken = [step for step in order if made[step].rung not in (Rung.YES, Rung.NOT_APPLICABLE)]
    assert found.missed is (broken[0] if broken else None)
    below = order[: order.index(broken[0])] if broken else order
    proven = [step for step in below if made[step].rung is Rung.YES]
    assert found.proven is (proven[-1] if proven else None)
    assert found.above_gap == [step for step in order if step not in below and made[step].rung is Rung.YES]
    assert found.steps == {step: made[step].rung for step in order}


@given(st.lists(st.sampled_from(Rung), min_size=1))
def test_several_parts_are_yes_only_together(rungs):
    found = together(rungs)
    assert (found is Rung.YES) == (Rung.YES in rungs and set(rungs) <= {Rung.YES, Rung.NOT_APPLICABLE})
    assert (found is Rung.DISPUTED) == (Rung.DISPUTED in rungs)
    assert (found is Rung.NO) == (Rung.NO in rungs and Rung.DISPUTED not in rungs)
