"""`sparsegate tactics` as people use it: formats, exit codes, light imports, and the documents that show it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import codes

ROOT = Path(__file__).parent.parent.parent
HEAVY = {"numpy", "torch", "onnx", "onnxruntime", "sklearn", "modelopt", "pydantic", "rich", "zstandard", "tensorrt"}
SAMPLE = "recipes/samples/trt104_verbose.log"


def run(*arguments, text=None, code=0):
    done = subprocess.run([sys.executable, "-m", "pipeline", "tactics", *arguments], cwd=ROOT, input=text, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_the_readme_shows_what_the_command_prints():
    shown = (ROOT / "README.md").read_text().partition("<!-- tactics:begin -->")[2].partition("<!-- tactics:end -->")[0]
    _fence, command, *output = shown.strip().splitlines()
    assert command.endswith(f"sparsegate tactics {SAMPLE}")
    assert run(SAMPLE).stdout.splitlines() == output[:-1]


def test_every_format_tells_of_the_same_layers():
    report = json.loads(run(SAMPLE, "--format", "json").stdout)
    (build,) = report["builds"]
    rows = list(csv.DictReader(io.StringIO(run(SAMPLE, "--format", "csv").stdout)))
    assert [row["layer"] for row in rows] == [layer["name"] for layer in build["layers"]]
    assert [row["selected"] for row in rows] == [layer["selected"] for layer in build["layers"]]
    text, md = run(SAMPLE).stdout, run(SAMPLE, "--format", "md").stdout
    for name in build["eligible"]:
        assert name in text
        assert name in md.replace("\\", "")
    lost = [float(line.split()[3]) for line in text.splitlines() if line.startswith("  no ")]
    assert lost == sorted(lost, reverse=True)
    assert len(lost) == 2


@pytest.mark.parametrize(
    ("log", "pattern", "code", "words"),
    [
        (SAMPLE, "stage0/block0/*", 0, ""),
        (SAMPLE, "stage0/block1/*", 1, "selected: no"),
        ("tests/data/tactics/trt103_count_and_list_disagree.log", "/enc/a/cv1/Conv", 3, "selected: disputed"),
        (SAMPLE, "nothing*", 2, "no layer matches"),
        ("tests/data/tactics/not_a_tensorrt_log.log", "*", 2, "no TensorRT build found"),
        ("tests/data/tactics/absent.log", "*", 2, "cannot read the file"),
    ],
)
def test_required_layers_set_the_exit_code(log, pattern, code, words):
    assert words in run(log, "--require", pattern, code=code).stderr


def test_names_are_never_markup_on_a_terminal(tmp_path, capsys):
    from pipeline import tactics
    from pipeline.report import tactics_md, tactics_rich

    path = tmp_path / "build.log"
    path.write_text(
        "(Sparsity) Found 1 layer(s) eligible to use sparse tactics: [red]a|b[/red]\n(Sparsity) Chose 0 layer(s) using sparse tactics:\n"
    )
    report = tactics.read([str(path)])
    tactics_rich.show(report)
    assert "[red]a|b[/red]" in capsys.readouterr().out.replace("\n", "")
    assert "\\[red\\]a\\|b\\[/red\\]" in tactics_md.render(report)


def test_stdin_is_read():
    text = (ROOT / SAMPLE).read_text()
    assert json.loads(run("-", "--format", "json", text=text).stdout)["builds"][0]["result"] == "passed"


def test_a_small_log_needs_no_heavy_package():
    script = (
        "import sys; from pipeline.cli import main\n"
        f"try: main(['tactics', {SAMPLE!r}])\n"
        "except SystemExit: pass\n"
        f"heavy = {HEAVY!r} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_documentation_lists_every_reason_and_marks_what_is_inferred():
    text = (ROOT / "docs" / "tactics.md").read_text()
    for code in codes.REASONS:
        assert f"| `{code.id}` | {code.text} | {code.versions} | {code.level} |" in text
    for claim in ("sparse tactics timed beside dense ones", "verbose forms of 9.x and 11.x"):
        row = next(line for line in text.splitlines() if claim in line)
        assert "**inferred**" in row


def test_a_build_that_failed_proves_no_engine_with_the_layer(tmp_path):
    log = tmp_path / "failed.log"
    log.write_text(
        "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=n.onnx --sparsity=enable\n"
        "[I] [TRT] (Sparsity) Found 1 layer(s) eligible to use sparse tactics: a\n"
        "[I] [TRT] (Sparsity) Chose 1 layer(s) using sparse tactics:, a\n"
        "&&&& FAILED TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=n.onnx --sparsity=enable\n"
    )
    from pipeline import api

    failures, code = api.require_selected(api.read_log(log), ["a"])
    assert code == 3
    assert [failure.layer for failure in failures] == ["a"]
