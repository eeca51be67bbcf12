from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli import group
from pipeline.recipe import load_recipe, words
from pipeline.recipe.generate import generated

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


@pytest.mark.parametrize("name", sorted(generated()))
def test_generated_documents_are_current(name):
    path = ROOT / "docs" / name
    assert path.is_file() and path.read_text() == generated()[name], "run `make docs`"


def test_the_example_of_the_page_is_a_recipe_that_works(tmp_path):
    from pipeline import sources

    blocks = re.findall(r"```(?:yaml|python)\n(.*?)```", (ROOT / "docs" / "recipes.md").read_text(), flags=re.S)
    recipe = next(block for block in blocks if block.startswith("name: mine"))
    (tmp_path / "mine.yaml").write_text(recipe)
    for name in ("model.py", "data.py"):
        (tmp_path / name).write_text(next(block for block in blocks if block.startswith(f"# {name}")))
    assert CliRunner().invoke(group, ["validate", str(tmp_path / "mine.yaml")]).exit_code == 0
    loaded = load_recipe(tmp_path / "mine.yaml")
    model = sources.model_source(loaded.sections["model"], loaded.base).make(0)
    data = sources.data_source(loaded.sections["data"], loaded.base, loaded.sections["model"])
    assert (model[0].in_features, [len(split) for split in (data.train, data.select, data.test)]) == (64, [2000, 300, 700])


def test_every_key_is_described():
    assert [path for path, info in words.keys().items() if not (info.description or "").strip()] == []


@pytest.mark.parametrize("name", ["recipe", "tactics", "check", "measurement", "verdict", "run"])
def test_the_schema_command_prints_the_documented_schema(name):
    result = CliRunner().invoke(group, ["schema", name])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((ROOT / "docs" / "schema" / f"{name}.json").read_text())


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_shipped_recipes_are_right_and_name_their_schema(path, monkeypatch):
    for name in ("IMAGES", "MODEL", "SAMPLES"):
        monkeypatch.setenv(name, "/somewhere")
    assert load_recipe(path).recipe.name == path.stem
    first = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", path.read_text().splitlines()[0])
    assert first is not None and (path.parent / first[1]).resolve() == ROOT / "docs" / "schema" / "recipe.json"


def test_the_schema_of_a_rule_lists_its_kinds():
    schema = json.loads(generated()["schema/recipe.json"])
    assert "latency" in schema["$defs"]["Rule"]["properties"]["kind"]["enum"]
    assert schema["$defs"]["Rule"]["additionalProperties"] is False
