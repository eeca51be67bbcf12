from __future__ import annotations

import pytest

from pipeline.recipe import load_recipe

MODEL = "name: small\nmodel: {python: 'm.py:build'}\n"


@pytest.fixture
def with_root(monkeypatch):
    monkeypatch.setenv("SG_ROOT", "/mnt/images")


def test_a_declared_variable_enters_values(write, with_root):
    loaded = load_recipe(write(MODEL + "environment: {SG_ROOT: null}\ndata: {imagefolder: '${SG_ROOT}/flowers'}\n"))
    assert loaded.recipe.data.imagefolder == "/mnt/images/flowers"
    assert "environment" not in loaded.sections


def test_the_value_enters_the_digest(write, monkeypatch):
    path = write(MODEL + "environment: {SG_ROOT: a}\ndata: {imagefolder: '${SG_ROOT}'}\n")
    before = load_recipe(path).digest
    monkeypatch.setenv("SG_ROOT", "b")
    assert load_recipe(path).digest != before


def test_a_value_that_is_one_variable_may_be_a_number(write, monkeypatch):
    monkeypatch.setenv("SG_EPOCHS", "3")
    loaded = load_recipe(write(MODEL + "environment: {SG_EPOCHS: '9'}\ndata: {digits: true}\ntrain: {dense: {epochs: '${SG_EPOCHS}'}}\n"))
    assert loaded.recipe.train.dense.epochs == 3


def test_a_default_holds_where_the_variable_is_not_set(write, monkeypatch):
    monkeypatch.delenv("SG_NONE", raising=False)
    loaded = load_recipe(write(MODEL + "environment: {SG_NONE: images}\ndata: {imagefolder: '${SG_NONE}'}\n"))
    assert loaded.recipe.data.imagefolder == "images"


def test_a_variable_that_is_not_declared_never_enters(problems, with_root):
    found = problems(MODEL + "data: {imagefolder: '${SG_ROOT}'}\n")
    assert found[0].startswith("3:21: ${SG_ROOT} is not declared")


def test_a_declared_variable_without_value_is_an_error(problems, monkeypatch):
    monkeypatch.delenv("SG_NONE", raising=False)
    found = problems(MODEL + "environment: {SG_NONE: null}\ndata: {imagefolder: '${SG_NONE}'}\n")
    assert "SG_NONE is not set" in found[0]


def test_a_doubled_dollar_is_text(write):
    loaded = load_recipe(write(MODEL.replace("'m.py:build'", "'m.py:build', args: {t: '$${A}'}") + "data: {digits: true}\n"))
    assert loaded.recipe.model.args == {"t": "${A}"}


def test_the_description_is_left_alone(write):
    assert load_recipe(write(MODEL + "data: {digits: true}\ndescription: costs ${5}\n")).recipe.description == "costs ${5}"
