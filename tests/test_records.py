"""Records are versioned documents that refuse what they cannot read."""

from __future__ import annotations

import json

import pytest

from pipeline.errors import InputError
from pipeline.records import io
from pipeline.records.tactics import Tactic, TacticReport


def test_schema_is_the_first_key():
    assert next(iter(json.loads(io.encode(TacticReport())))) == "schema"
    assert io.schema_of(TacticReport) == "sparsegate.tactics/1"


def test_a_record_survives_writing_and_reading(tmp_path):
    report = TacticReport(applicable=False, why_not="no sparse kernels")
    io.write(tmp_path / "deep" / "t.json", report)
    assert io.read(tmp_path / "deep" / "t.json", TacticReport) == report
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["t.json"]


def test_unknown_fields_are_ignored():
    assert io.decode(b'{"schema": "sparsegate.tactics/1", "later": 1}', TacticReport) == TacticReport()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"schema": "sparsegate.tactics/2"}', "newer sparsegate"),
        (b'{"schema": "sparsegate.check/1"}', "expected a sparsegate.tactics/1"),
        (b"{}", "no schema"),
        (b"[]", "not a readable JSON record"),
        (b"", "not a readable JSON record"),
        (b"\x00\xff", "not a readable JSON record"),
        (b'{"schema": "sparsegate.tactics/1", "builds": 3}', "not a valid"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(data, words):
    with pytest.raises(InputError, match=words) as caught:
        io.decode(data, TacticReport, where="file.json")
    assert "file.json" in str(caught.value)


def test_the_tactic_class_is_named_class_in_json():
    tactic = Tactic(name="k", kind="sparse", id="0x1", runner=None, how="choice")
    assert b'"class"' in io.msgspec.json.encode(tactic)
