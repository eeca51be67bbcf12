from __future__ import annotations

import pytest

from pipeline.recipe import RecipeError, load_recipe

RULES = "gate: {rules: [{kind: latency, at_most: 1.1}]}\n"
MINIMAL = "name: small\nmodel: {python: 'm.py:build'}\ndata: {digits: true}\n"


@pytest.mark.parametrize(
    ("override", "read", "value"),
    [
        ("train.dense.epochs=3", lambda r: r.train.dense.epochs, 3),
        ("train.dense.lr=1e-3", lambda r: r.train.dense.lr, 0.001),
        ("measure.batches=[1, 8]", lambda r: r.measure.batches, [1, 8]),
        ("gate.rules.0.at_most=1.5", lambda r: r.gate.rules[0].at_most, 1.5),
        ("train.dense.clip_norm=null", lambda r: r.train.dense.clip_norm, None),
        ("description='a=b'", lambda r: r.description, "a=b"),
        ("model.args.width=16", lambda r: r.model.args, {"width": 16}),
        ("train={dense: {epochs: 2}}", lambda r: r.train.dense.epochs, 2),
    ],
)
def test_an_override_replaces_one_value(write, override, read, value):
    assert read(load_recipe(write(MINIMAL + RULES + "measure: {batches: [4]}\n"), [override]).recipe) == value


def test_the_last_override_of_a_key_wins_and_the_digest_follows(write):
    path = write()
    twice = load_recipe(path, ["seed=1", "seed=2"])
    assert twice.recipe.seed == 2
    assert twice.digest == load_recipe(path, ["seed=2"]).digest != load_recipe(path).digest


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("seed", "not of the form key=value"),
        ("=3", "not of the form key=value"),
        ("train..epochs=3", "not of the form key=value"),
        ("train.dense.epochs=many", "must be a whole number"),
        ("train.dense.epoch=3", "did you mean 'epochs'?"),
        ("name.x=1", "no keys below it"),
        ("gate.rules.4.at_most=2", "no position in it"),
        ("gate.rules.x.at_most=2", "no position in it"),
        ("seed=[1", "not valid YAML"),
        ("modle.timm=x", "did you mean 'model'?"),
        ("seed={a: 1, a: 2}", "stands twice"),
    ],
)
def test_an_error_in_an_override_names_the_override(problems, override, says):
    found = problems(MINIMAL + RULES, override)
    assert len(found) == 1
    assert found[0].startswith(f"--set {override}: ")
    assert says in found[0]


def test_every_wrong_override_is_reported(problems):
    assert len(problems(MINIMAL, "a", "b", "name.x=1")) == 3


def test_the_place_of_an_overridden_value_is_the_override_and_of_others_the_file(write):
    path = write(MINIMAL + "seed: x\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, ["export.opset=3"])
    assert sorted(problem.where for problem in caught.value.problems) == sorted([f"{path}:4:7", "--set export.opset=3"])
