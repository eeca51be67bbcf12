"""docs/recipes.md and the recipe's JSON Schema, both made from the schema's own words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pipeline.recipe.schema import Recipe
from pipeline.recipe.words import is_path, section_of

INTRODUCTION = """\
# Recipes

A recipe is one YAML file that says everything about a run: the model, the data, how it is trained 2:4, exported, built,
measured, and by which budgets it is judged. This page is made from `pipeline/recipe/schema.py` by
`python -m pipeline.recipe.generate`; `sparsegate schema recipe` prints the same as JSON Schema, and
`sparsegate validate RECIPE` checks a recipe and what this machine can run of it.

For completion and checks in an editor, put this line first (the path is the schema's, from the recipe):

```yaml
# yaml-language-server: $schema=../docs/schema/recipe.json
```

The shortest recipe names a model, data and budgets; everything else has a default:

```yaml
name: mine
model: {python: model.py:build}
data: {python: data.py:splits}
gate:
  rules:
    - {kind: quality, drop_at_most: 0.01}
    - {kind: rungs, rung: exported, at_least: all}
```

with two Python files beside it that need nothing of sparsegate:

```python
# model.py
from torch import nn


def build():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
```

```python
# data.py
import numpy as np


def splits():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 64)).astype(np.float32)
    y = x[:, :10].argmax(axis=1)
    return {"train": (x[:2000], y[:2000]), "select": (x[2000:2300], y[2000:2300]), "test": (x[2300:], y[2300:])}
```

**Trust.** A recipe may name Python code and commands, and running it runs them: treat a recipe like a Makefile.

**Paths** start at the recipe's folder. `path.py:callable` names a callable in a file there; modules beside that file can
be imported by it, and a change in any of them trains anew. `package.module:callable` names an installed one.

**`extends: other.yaml`** takes every key from another recipe where this one says nothing. Mappings are merged key by
key, lists are replaced whole, and so is `model` or `data` when this recipe names another kind of it. Paths in the other
recipe still start at the other recipe's folder.

**Environment variables** enter only where they are declared: after `environment: {DATA: null, EPOCHS: "10"}` a value may
say `${DATA}`. A declared variable without a default must be set. `$${DATA}` stands for the text `${DATA}`. A value that
is nothing but `${EPOCHS}` is read as YAML, so it may be a number.

**`--set a.b=c`** replaces one value from the command line: keys and list positions joined by dots, the value as YAML,
such as `--set train.dense.epochs=3` or `--set gate.rules.0.at_most=1.05`.

**Errors** name file, line and column, all of them at once. The words below are all that there are: any other key is an error.
"""

READERS = """\
## Arguments of the readers of data

- `digits: true`: `seed` (0), `select` (247 samples), `test` (650 samples), `scale` (1: each pixel becomes scale x scale).
- `python:`: the callable's keyword arguments. It returns the splits as a tuple (train, select, test) or a dict with these
  keys. A split is a pair of arrays (inputs, targets) where there is one input and one head; else an object with `len()`,
  `batch(index)` and `slices()`, such as `pipeline.sources.ArraySplit` makes from arrays. A split with
  `augmented(index, rng)` changes its training samples at random.
- `imagefolder:`: `size` (pixels or [height, width]; the model's own), `augment` of training images (none; flip, crop,
  crop-flip), `select_share` (0.1, where there is no folder to select on), `seed` (0), `workers` (4 threads). Where no
  timm or torchvision model says how images are prepared: `channels` (3 or 1), `mean`, `std`, `interpolation` (bilinear),
  `crop_share` (0.875).
- `npz:`: none.

Splits: `train` trains, `select` chooses (the epoch to keep), `test` is held out until the engines are judged. An image
folder's splits are `train/`, `test/` (or `val/`), and `select/`; without `select/` it is `val/` where `test/` is there
too, else a share of `train/`, drawn class by class. A timm model's images are prepared by timm's own transform for that
model, a torchvision model's by the preset of its first listed weights.

Slices: every class is one (`class=3`; `colour.class=3` for a head `colour` among several). `data.slices.csv` names a file
such as

```csv
split,sample,light
test,0,day
test,1,night
```

where `sample` is the sample's number, or the image's path below its split's folder; `data.slices.python` names a callable
that gets the split's name and the split and returns `{"light": labels}`.
"""

METRICS = """\
## Heads and metrics

A model with several outputs names them in `model.heads`, in the order in which `forward()` returns them (or it returns a
dict with these keys), and `data.heads` gives each its metric, which also says what it is trained on:

| metric | trained on | shown while training |
|---|---|---|
| `accuracy`, `top5` | cross-entropy of class scores [n, classes] | share of samples right (among the top five) |
| `binary` | binary cross-entropy of one logit [n] | share of samples whose logit has the right sign |
| `mse`, `mae` | squared, absolute error | minus that error |

The losses of all heads add up.
"""


def schema() -> dict[str, Any]:
    """The recipe's JSON Schema (draft 2020-12)."""
    made = Recipe.model_json_schema()
    whole = {"required": made.pop("required")}  # a recipe that extends another says only what differs
    made["anyOf"] = [{"required": ["extends"]}, whole]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "sparsegate.recipe/1", **made}


def schema_text() -> str:
    """The schema as it stands in docs/schema/recipe.json."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def markdown() -> str:
    """docs/recipes.md."""
    parts = [INTRODUCTION, "\n".join(_section(Recipe, "", {})), READERS, METRICS]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _section(section: type[BaseModel], path: str, seen: dict[type[BaseModel], str]) -> Iterator[str]:
    seen[section] = path
    title = f"`{path}`" if path else "The whole"
    yield f"## {title}\n\n{(section.__doc__ or '').strip()}\n\n| key | what it may be | default | |\n|---|---|---|---|"
    below: list[tuple[type[BaseModel], str]] = []
    shape = section.model_json_schema()["properties"]
    for name, info in section.model_fields.items():
        found, names = section_of(info.annotation)
        where = ".".join(part for part in (path, name) if part)
        listed = "list of " if shape[name].get("type") == "array" else ""
        if found is not None:
            where += "[]" if listed else ""
            below.append((found, ".".join((where, *("NAME" for _ in names)))))
        kind = f"{listed}section{'s' if listed else ''}" if found is not None else _kind(shape[name])
        kind = kind.replace("text", "path") if is_path(info) else kind
        text = " ".join((info.description or "").split())
        yield f"| `{name}` | {kind} | {_default(info, found is not None)} | {text} |".replace(" |  |", " | |")
    yield ""
    for found, where in below:
        if found in seen:
            yield f"## `{where}`\n\nThe same keys as `{seen[found]}`.\n"
        else:
            yield from _section(found, where, seen)


def _default(info: FieldInfo, is_section: bool) -> str:
    if info.is_required():
        return "(needed)"
    if is_section:
        return ""
    value = info.default_factory() if info.default_factory is not None else info.default  # type: ignore[call-arg]  # no factory here takes data
    if value is PydanticUndefined or value is None or value in ({}, ""):
        return ""
    return f"`{json.dumps(value)}`"


def _kind(shape: dict[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "anyOf" in shape:
        return " or ".join(text for part in shape["anyOf"] if (text := _kind(part)) != "null")
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"])
    if "const" in shape:
        return f"`{shape['const']}`"
    kind = shape.get("type")
    if kind == "array":
        return f"list of {_kind(shape.get('items', {}))}"
    if kind == "object":
        values = shape.get("additionalProperties") or next(iter(shape.get("patternProperties", {}).values()), None)
        return f"name: {_kind(values)}" if isinstance(values, dict) else "mapping"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true, false", "null": "null"}
    return words.get(str(kind), "any value") + _limits(shape)


def _limits(shape: dict[str, Any]) -> str:
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    texts = [f"{sign} {shape[name]}" for name, sign in signs.items() if name in shape]
    return f" {', '.join(texts)}" if texts else ""
