from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import ExitCode, InputError
from pipeline.recipe import RecipeError, load_recipe

MINIMAL = "name: small\nmodel: {python: 'm.py:build'}\ndata: {digits: true}\n"


def test_a_minimal_recipe_has_every_default(write):
    loaded = load_recipe(write())
    assert loaded.recipe.train.dense.epochs == 10
    assert loaded.sections["train"]["finetune"]["schedule"] == "cosine"
    assert loaded.sections["seed"] == 0
    assert json.loads(json.dumps(loaded.sections)) == loaded.sections
    assert loaded.base == loaded.path.parent.resolve()
    assert loaded.text == MINIMAL


def test_the_digest_follows_the_content_and_not_the_way_it_is_written(write):
    plain = load_recipe(write()).digest
    reworded = "# a comment\ndata: {digits: yes_is_text}\n".replace("yes_is_text", "true") + "model:\n  python: m.py:build\nname: 'small'\n"
    assert load_recipe(write(reworded)).digest == plain
    assert load_recipe(write(MINIMAL + "train: {dense: {epochs: 10}}\n")).digest == plain
    assert load_recipe(write(MINIMAL + "train: {dense: {epochs: 11}}\n")).digest != plain


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"name: x\0", "binary"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "UTF-8"),
        (b"# " + b"x" * (1 << 20), "larger than"),
        (b"- a\n- b\n", "mapping"),
        (b"just words", "mapping"),
        (b"# nothing but a comment\n", "mapping"),
    ],
)
def test_a_file_that_is_no_recipe_is_one_clear_error(tmp_path, content, message):
    path = tmp_path / "r.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load_recipe(path)
    assert caught.value.exit_code == ExitCode.USAGE
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(InputError, match="cannot read the recipe: No such file"):
        load_recipe(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="directory"):
        load_recipe(tmp_path)


def test_a_recipe_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert load_recipe(path).recipe.name == "small"


@pytest.mark.parametrize(
    ("line", "place", "says"),
    [
        ("seed: [1, 2", "5:1", "not valid YAML"),
        ("naem: 3", "4:1", "did you mean 'name'?"),
        ("train: {lr: 3}", "4:9", "it belongs at train.dense.lr, train.finetune.lr"),
        ("train:\n  dense: {epochs: 2.5}", "5:19", "train.dense.epochs must be a whole number, not 2.5"),
        ("train: {dense: {epochs: true}}", "4:25", "a whole number"),
        ("train: {dense: {lr: 0}}", "4:21", "greater than 0"),
        ("train: {dense: {schedule: cosin}}", "4:27", "did you mean 'cosine'?"),
        ("train: [1]", "4:8", "a section with keys of its own"),
        ("description: 5", "4:14", "put it in quotes"),
        ("export: {batch: {min: 8, opt: 4}}", "4:10", "min <= opt <= max"),
        ("gate: {rules: [{kind: latency}, {kind: latncy}]}", "4:40", "did you mean 'latency'?"),
        ("gate: {rules: [{at_most: 1.0}]}", "4:16", "gate.rules.0 lacks the key 'kind'"),
        ("seed: 1\nseed: 2", "5:1", "the key 'seed' stands twice (first in line 4)"),
        ("1: 2", "4:1", "not plain text"),
        ("description: !!python/object:os.system x", "4:14", "not for recipes"),
        ('description: "a\\ud800"', "4:14", "half a character"),
        ('description: "a\\0b"', "4:14", "a NUL"),
        ("environment: {A-B: x}", "4:15", "a name of letters"),
        ("build: {remote_folder: tmp}", "4:24", "matches the pattern"),
        ("train: {dense: {lr: .nan}}", "4:21", "not a finite number"),
        ("seed: 99999999999999999999999", "4:7", "too large"),
        ("train: {masks: &m {include: [a]}}\nfreeze: {<<: *m}", "5:10", "extends"),
    ],
)
def test_every_error_has_its_place_and_the_next_step(problems, line, place, says):
    found = problems(MINIMAL + line + "\n")
    assert len(found) == 1
    assert found[0].startswith(f"{place}: ")
    assert says in found[0]


def test_all_problems_are_reported_at_once_in_the_order_of_the_file(problems):
    found = problems("name: 'a b'\nmodel: {pyhton: x}\ndata: {digits: true, npz: a.npz}\nexport: {opset: 3}\n")
    assert [text.split(": ")[0] for text in found] == ["1:7", "2:9", "3:1", "4:17"]


def test_the_message_of_several_problems_lists_each(write):
    with pytest.raises(RecipeError) as caught:
        load_recipe(write(MINIMAL + "a: 1\nb: 2\n"))
    text = str(caught.value)
    assert text.startswith("2 problems in the recipe:")
    assert ":4:1: unknown key 'a'" in text
    assert ":5:1: unknown key 'b'" in text


def test_exactly_one_kind_of_model_is_needed(problems):
    assert "give exactly one of python, timm, torchvision, onnx" in problems(MINIMAL.replace("python: 'm.py:build'", ""))[0]
    assert "not python and timm" in problems(MINIMAL.replace("{python:", "{timm: resnet18, python:"))[0]


def test_aliases_cannot_grow_without_bound(problems):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert any("20000 values" in text for text in problems("\n".join(lines)))


def test_a_value_that_holds_itself_is_an_error(problems):
    assert "holds itself" in problems("model: &m {args: {again: *m}}\n")[0]


@pytest.mark.parametrize("depth", [60, 600])
def test_deep_nesting_is_an_error(problems, depth):
    assert "40 levels" in problems("a: " + "[" * depth + "]" * depth)[0]


def test_dates_and_numbers_in_yaml_1_2_stay_what_they_look_like(write):
    loaded = load_recipe(write(MINIMAL.replace("'m.py:build'", "'m.py:build', args: {day: 2026-01-02, on: yes, lr: 1e-3, n: 0o17}")))
    assert loaded.sections["model"]["args"] == {"day": "2026-01-02", "on": "yes", "lr": 0.001, "n": 15}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=200))
def test_any_text_is_a_recipe_or_an_input_error(tmp_path, text):
    path = tmp_path / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(InputError):
        load_recipe(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["epochs", "lr", "min", "kind", "x"]), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["seed", "train", "export", "gate", "measure", "build", "data", "environment", "extends", "other"])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(extra=st.dictionaries(KEYS, VALUES, max_size=3))
def test_any_value_anywhere_is_accepted_or_refused_with_a_place(tmp_path, extra):
    path = tmp_path / "any.yaml"
    content = {"name": "x", "model": {"python": "m.py:f"}, "data": {"digits": True}} | extra
    path.write_text(json.dumps(content))
    try:
        loaded = load_recipe(path)
    except RecipeError as error:
        assert all(str(path) in problem.where or problem.where.startswith(("recipe", "--set")) for problem in error.problems)
    except InputError as error:  # an `extends` that names no file
        assert "extends" in extra, error
    else:
        assert loaded.recipe.name == "x"
