"""The public documents by the name that `sparsegate schema` takes."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from pipeline.records.io import Record, json_schema, schema_of

RECORDS: dict[str, str] = {
    "tactics": "pipeline.records.tactics:TacticReport",
    "check": "pipeline.records.check:CheckReport",
    "measurement": "pipeline.records.measurement:Measurement",
    "verdict": "pipeline.records.verdict:Verdict",
    "baseline": "pipeline.records.baseline:Baseline",
    "report": "pipeline.records.report:RunReport",
    "run": "pipeline.records.run:Run",
    "diff": "pipeline.records.difference:DiffReport",
    "stability": "pipeline.records.difference:StabilityReport",
    "story": "pipeline.records.story:LayerStory",
    "estimate": "pipeline.records.estimate:EstimateReport",
}
"""Name -> module and record."""


def record_type(name: str) -> type[Record]:
    """The record of a name; KeyError if there is none."""
    module, _, attribute = RECORDS[name].partition(":")
    found: type[Record] = getattr(import_module(module), attribute)
    return found


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a record."""
    kind = record_type(name)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": schema_of(kind), **json_schema(kind)}


def schema_text(name: str) -> str:
    """The schema as it stands in docs/schema/<name>.json."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"
