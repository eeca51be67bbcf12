"""The commands: formats, exit codes, errors without a traceback, a real parser's word."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import graph_zoo as zoo
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper as h

import pipeline
from pipeline import graph
from pipeline.cli import main
from pipeline.cli.check import command as check_command
from pipeline.cli.prune import command as prune_command
from pipeline.errors import InputError, MissingPackageError
from pipeline.graph import parsing
from pipeline.records.check import Target
from pipeline.report.check_markdown import render as markdown
from pipeline.report.check_text import render as text

RIGHT = zoo.two_four(zoo.dense((8, 12), 0), 0, 0).astype(np.float16)
FULL = zoo.dense((12, 8), 1).astype(np.float16)


@pytest.fixture
def model(tmp_path):
    """`good` is 2:4, `bad` is not, `[odd]` has a weight that no one can compute here."""
    nodes = [
        h.make_node("Gemm", ["x", "w"], ["a"], name="good"),
        h.make_node("Gemm", ["a", "v"], ["b"], name="bad"),
        h.make_node("Hardmax", ["w"], ["o"]),
        h.make_node("Gemm", ["b", "o"], ["y"], name="[odd]"),
    ]
    path = tmp_path / "m.onnx"
    onnx.save(zoo.model_of(nodes, [zoo.init("w", RIGHT), zoo.init("v", FULL)], dtype=10), path)
    return path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 0),
        (["--require", "good"], 0),
        (["--require", "bad"], 1),
        (["--require", "*"], 1),
        (["--require", "[odd]"], 3),
        (["--require", "good", "--require", "[o*"], 3),
        (["--require", "good", "--sm", "8.6", "--tensorrt", "10.13", "--typing", "strong"], 0),
        (["--require", "good", "--sm", "8.6"], 3),
        (["--require", "good", "--sm", "7.5"], 1),
        (["--sm", "7.5"], 0),
        (["--require", "nothing"], 2),
        (["--sm", "ampere"], 2),
        (["--typing", "weak", "--tensorrt", "11.0"], 2),
    ],
)
def test_exit_codes(arguments, code, model, capsys):
    with pytest.raises(SystemExit) as left:
        main(["check", str(model), *arguments])
    assert left.value.code == code
    assert bool(capsys.readouterr().err) == (code == 2)


def test_json_is_the_record(model):
    done = CliRunner().invoke(check_command, [str(model), "--format", "json", "--sm", "8.6"])
    found = json.loads(done.output)
    assert list(found)[:2] == ["schema", "model"]
    assert found["schema"] == "sparsegate.check/1"
    assert found["target"] == {"sm": "8.6", "tensorrt": None, "typing": None}
    assert found["totals"] == {"layers": 3, "two_four": 1, "eligible": 0}
    wanted = {"node", "graph", "op", "weight", "operand", "shape", "axis", "dtype", "two_four", "groups_violating", "zero_fraction"}
    assert wanted | {"negative_zeros", "nonfinite", "two_four_on_other_axes", "siblings", "eligible", "rules"} <= set(found["layers"][0])


def test_markdown_and_text_say_the_same_and_obey_no_name(model, tmp_path):
    nodes = [h.make_node("Gemm", ["x", "w"], ["y"], name="evil\x1b[2J|<script>")]
    onnx.save(zoo.model_of(nodes, [zoo.init("w", FULL)]), tmp_path / "e.onnx")
    report = graph.check(tmp_path / "e.onnx", Target())
    assert "\x1b" not in text(report) + markdown(report)
    assert "<script>" not in markdown(report)
    assert "SG101" in text(report)
    assert "SG101" in markdown(report)


def test_the_api_takes_text_paths(model):
    assert pipeline.check_onnx(str(model)).totals.layers == 3


def test_prune_writes_a_model_that_passes(model, tmp_path):
    out = tmp_path / "out.onnx"
    done = CliRunner().invoke(prune_command, [str(model), "-o", str(out), "--format", "json"])
    assert [layer["action"] for layer in json.loads(done.output)["layers"]] == ["already 2:4", "pruned", "refused"]
    assert CliRunner().invoke(check_command, [str(out), "--require", "bad"]).exit_code == 0
    assert "1 pruned, 1 already 2:4, 1 refused" in CliRunner().invoke(prune_command, [str(model), "-o", str(out)]).output


@pytest.mark.parametrize("command", [["check", "gone.onnx"], ["prune", "gone.onnx", "-o", "o.onnx"]])
def test_bad_input_is_one_message_and_exit_2(command, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", *command], capture_output=True, text=True, env=os.environ, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# --- a real parser -------------------------------------------------------------------------------------------------------
rtx = pytest.mark.skipif(parsing.find_spec("tensorrt_rtx") is None, reason="needs the package tensorrt-rtx")


@rtx
def test_the_parser_reads_a_good_model_with_external_data(tmp_path):
    model = zoo.model_of([h.make_node("Gemm", ["x", "w"], ["y"], name="fc")], [zoo.init("w", np.zeros((8, 12), np.float32))])
    model.graph.input[0].CopyFrom(h.make_tensor_value_info("x", 1, [4, 8]))
    model.graph.output[0].CopyFrom(h.make_tensor_value_info("y", 1, [4, 12]))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="d.bin", size_threshold=0)
    found = graph.preflight(tmp_path / "m.onnx", "strong")
    assert (found.parsed, found.errors) == (True, [])
    assert found.layers > 0
    assert found.parser.startswith("tensorrt")


@rtx
def test_the_parser_s_errors_carry_the_node_s_name(tmp_path):
    nodes = [h.make_node("Gemm", ["x", "w"], ["a"], name="fc"), h.make_node("Unique", ["a"], ["y"], name="the culprit")]
    model = zoo.model_of(nodes, [zoo.init("w", np.zeros((8, 12), np.float32))])
    model.graph.input[0].CopyFrom(h.make_tensor_value_info("x", 1, [4, 8]))
    model.graph.output[0].CopyFrom(h.make_tensor_value_info("y", 1, None))
    onnx.save(model, tmp_path / "m.onnx")
    done = CliRunner().invoke(check_command, [str(tmp_path / "m.onnx"), "--parse"])
    assert done.exit_code == 0
    assert "refuses the model" in done.output
    assert "the culprit (Unique): UNSUPPORTED_NODE: the parser does not support this operator" in done.output


def test_an_empty_file_is_refused_although_the_parser_takes_it(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        graph.preflight(tmp_path / "m.onnx")


def test_without_a_parser_the_extra_is_named(model):
    with pytest.raises(MissingPackageError, match=r"sparsegate\[rtx\]"):
        parsing.preflight(model, parsers=["no_such_package_at_all"])


def fake_parser(folder, monkeypatch, body: str) -> None:
    """A package that stands where a parser would, and misbehaves in one way."""
    (folder / "fake_trt.py").write_text(body)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import sys; sys.exit(7)", "ended with 7"),
        ("import time; time.sleep(60)", "did not end within 1 s"),
    ],
)
def test_a_parser_that_ends_its_process_does_not_end_ours(body, words, model, tmp_path, monkeypatch):
    fake_parser(tmp_path, monkeypatch, body)
    found = parsing.preflight(model, parsers=["fake_trt"], timeout_s=1 if "sleep" in body else 60)
    assert not found.parsed
    assert words in found.errors[0].text


def test_a_parser_without_its_libraries_is_passed_over(model, tmp_path, monkeypatch):
    fake_parser(tmp_path, monkeypatch, "raise ImportError('libnvonnxparser.so.11: cannot open shared object file')")
    with pytest.raises(InputError, match="libnvonnxparser"):
        parsing.preflight(model, parsers=["fake_trt"])
