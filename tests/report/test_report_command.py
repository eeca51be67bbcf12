"""`sparsegate report` reads a run's folder and changes nothing in it."""

from __future__ import annotations

import json
import subprocess
import sys

import crafted_run as c
import pytest


@pytest.fixture
def folder(tmp_path):
    return c.write_run(tmp_path / "logs" / "crafted" / "20261130-101112-abcd", c.evidence())


def sparsegate(*args, **env):
    import os

    return subprocess.run([sys.executable, "-m", "pipeline", *map(str, args)], capture_output=True, text=True, env={**os.environ, **env})


def test_report_reads_a_folder_and_leaves_it_as_it_was(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = sparsegate("report", folder)
    assert done.returncode == 0, done.stderr
    assert "6 selected disproved for tail" in done.stdout
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_json_is_what_the_text_shows_as_data(folder):
    found = json.loads(sparsegate("report", folder, "--format", "json").stdout)
    assert found["schema"] == "sparsegate.report/1"
    assert [row["of"] for row in found["verdict"]["ladder"]] == ["stem", "body", "tail", "engine batch=32", "service"]
    text = " ".join(sparsegate("report", folder).stdout.split())
    assert text.startswith(f"{found['outcome']} {found['run']['recipe']}/{found['run']['id']}")
    assert text.endswith(f"next: {found['next']}")
    for ratio in found["measurement"]["ratios"]:
        assert f"{ratio['arm']}/{ratio['over']}" in text and f"{ratio['ratio']['value']}x" in text
    for finding in found["verdict"]["findings"]:
        assert f"{finding['id']} {finding['observation']}" in text and finding["next"] in text
    for note in [*found["verdict"]["notes"], *(layer["text"] for layer in found["masks"]["layers"] if not layer["masked"])]:
        assert note in text


def test_json_of_a_run_that_left_nothing_is_a_whole_document(folder):
    for record in (folder / "records").iterdir():
        record.unlink()
    found = json.loads(sparsegate("report", folder, "--format", "json").stdout)
    assert (found["measurement"], found["masks"], found["verdict"]["outcome"]) == (None, None, "inconclusive")


def test_pipes_get_80_columns_and_COLUMNS_widens(folder):
    wide = {columns: sparsegate("report", folder, COLUMNS=columns).stdout.splitlines() for columns in ("", "130")}
    prose = {columns: max(len(line) for line in lines if "sparsegate " not in line) for columns, lines in wide.items()}
    assert prose[""] <= 80 < prose["130"]


def test_what_is_no_run_is_one_clear_line(tmp_path):
    done = sparsegate("report", tmp_path)
    assert done.returncode == 2
    assert "run.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_record_is_named(folder):
    (folder / "records" / "tactics.json").write_bytes(b"{")
    done = sparsegate("report", folder)
    assert done.returncode == 2
    assert "tactics.json" in done.stderr


def test_the_report_imports_nothing_heavy(folder):
    code = (
        "import sys; from pipeline.cli import group; group(['report', sys.argv[1]], standalone_mode=False);"
        "heavy = {'torch', 'onnx', 'onnxruntime', 'sklearn', 'modelopt', 'numpy', 'pydantic', 'rich'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
