from __future__ import annotations

import pytest

from pipeline.recipe import RecipeError, load_recipe

BASE = """\
name: base
model: {python: 'm.py:build', args: {width: 8, depth: 2}}
data: {npz: data/a.npz, slices: {csv: data/s.csv}, files: [data/x.txt]}
train: {dense: {epochs: 5, lr: 0.5}}
gate: {rules: [{kind: latency, at_most: 1.1}, {kind: rungs, rung: exported, at_least: all}]}
"""


def test_a_recipe_says_only_what_differs(write):
    write(BASE, "base.yaml")
    found = load_recipe(write("extends: base.yaml\nname: child\ntrain: {dense: {epochs: 7}}\n")).recipe
    assert (found.name, found.train.dense.epochs, found.train.dense.lr) == ("child", 7, 0.5)
    assert found.model.args == {"width": 8, "depth": 2}


def test_lists_are_replaced_whole_and_mappings_merged(write):
    write(BASE, "base.yaml")
    found = load_recipe(write("extends: base.yaml\nmodel: {args: {width: 9}}\ngate: {rules: []}\n")).recipe
    assert found.model.args == {"width": 9, "depth": 2}
    assert found.gate.rules == []


def test_another_kind_of_model_or_data_replaces_the_section(write):
    write(BASE, "base.yaml")
    found = load_recipe(write("extends: base.yaml\nmodel: {timm: resnet18}\ndata: {digits: true}\n")).recipe
    assert (found.model.python, found.model.timm, found.model.args) == (None, "resnet18", {})
    assert (found.data.npz, found.data.slices.csv) == (None, None)


def test_paths_of_the_base_still_start_at_the_base(write):
    write(BASE, "common/base.yaml")
    found = load_recipe(write("extends: ../common/base.yaml\n", "mine/child.yaml")).recipe
    assert found.model.python == "../common/m.py:build"
    assert found.data.npz == "../common/data/a.npz"
    assert found.data.files == ["../common/data/x.txt"]
    assert found.data.slices.csv == "../common/data/s.csv"


def test_absolute_paths_and_packages_are_left_alone(write):
    write(BASE.replace("m.py:build", "package.module:build").replace("data/a.npz", "/data/a.npz"), "common/base.yaml")
    found = load_recipe(write("extends: common/base.yaml\n")).recipe
    assert (found.model.python, found.data.npz) == ("package.module:build", "/data/a.npz")


def test_a_chain_of_recipes_is_followed(write):
    write(BASE, "a.yaml")
    write("extends: a.yaml\nname: b\nseed: 4\n", "b.yaml")
    found = load_recipe(write("extends: b.yaml\nname: c\n", "c.yaml")).recipe
    assert (found.name, found.seed, found.train.dense.lr) == ("c", 4, 0.5)


def test_an_error_names_the_file_that_says_the_value(write):
    base = write(BASE.replace("epochs: 5", "epochs: five"), "base.yaml")
    child = write("extends: base.yaml\nnaem: x\n")
    with pytest.raises(RecipeError) as caught:
        load_recipe(child)
    places = sorted(problem.where.rsplit("/", 1)[-1] for problem in caught.value.problems)
    assert places == [f"{base.name}:4:25", f"{child.name}:2:1"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("extends: recipe.yaml\n", "leads back"),
        ("extends: none.yaml\n", "cannot extend none.yaml"),
        ("extends: recip.yaml\n", "did you mean"),
        ("extends: [a]\n", "must be the path"),
    ],
)
def test_a_base_that_cannot_be_taken_is_refused_at_its_place(problems, text, says):
    found = problems(text)
    assert found[0].startswith("1:10: ")
    assert says in found[0]


def test_recipes_that_extend_each_other_are_refused(write):
    write("extends: b.yaml\n", "a.yaml")
    with pytest.raises(RecipeError, match="leads back"):
        load_recipe(write("extends: a.yaml\n", "b.yaml"))


def test_the_digest_is_that_of_the_whole(write):
    write(BASE, "base.yaml")
    child = write("extends: base.yaml\nname: child\n")
    before = load_recipe(child).digest
    write(BASE.replace("lr: 0.5", "lr: 0.4"), "base.yaml")
    assert load_recipe(child).digest != before
    assert load_recipe(write(BASE.replace("name: base", "name: child"), "flat.yaml")).digest == before
