"""`sparsegate tactics` as people use it: formats, exit codes, light imports, and the documents that show it."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.text("=+-@\t ab1.\n,\"'", min_size=1, max_size=8))
def test_no_text_of_a_log_is_a_formula_in_the_csv(name):
    from pipeline.records.rung import Rung
    from pipeline.records.tactics import Best, BestTime, Build, Reason, Tactic, TacticLayer, TacticReport
    from pipeline.report import tactics_csv

    tactic = Tactic(name=name, kind="sparse", id="-1", runner=None, how="layer-info")
    best = Best(sparse=BestTime(ms=0.5, format=name), dense=None, comparable=False)
    layer = TacticLayer(
        id="x", name=name, onnx_nodes=[name], tactic=tactic, best=best, reasons=[Reason(code="dla", text=name)], tuned_ms=-0.5,
        selected=Rung.YES,
    )  # fmt: skip
    text = tactics_csv.render(TacticReport(builds=[Build(id=0, tensorrt=name, layers=[layer])]))
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    for cell in row.values():
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")) or float(cell) is not None
    for column in ("layer", "tensorrt", "tactic", "best_sparse_format", "onnx_nodes"):
        assert row[column].removeprefix("'") == name.removeprefix("'")
    assert (row["tuned_ms"], row["tactic_id"], row["best_sparse_ms"]) == ("-0.5", "-1", "0.5")


FOUND = "[I] [TRT] (Sparsity) Found {} layer(s) eligible to use sparse tactics: {}\n"
CHOSE = "[I] [TRT] (Sparsity) Chose {} layer(s) using sparse tactics:, {}\n"


def fused_log(path, found, chosen):
    path.write_text(FOUND.format(len(found), ", ".join(found)) + CHOSE.format(len(chosen), ", ".join(chosen)))
    return str(path)


@pytest.mark.parametrize("pattern", ["conv1", "relu1", "add", "conv1 + relu1", "conv*", "PWN(add, relu2)"])
def test_a_part_of_a_fused_layer_is_satisfied_only_where_that_layer_is_selected(tmp_path, pattern):
    layers = ["conv1 + relu1", "conv2 || conv3 + PWN(add, relu2)"]
    from pipeline import api

    for chosen in ([], layers[:1], layers[1:], layers):
        report = api.read_log(fused_log(tmp_path / "build.log", layers, chosen))
        matched = [name for name in layers if pattern.rstrip("*") in name]
        failures, code = api.require_selected(report, [pattern])
        assert {failure.layer for failure in failures} == {name for name in matched if name not in chosen}
        assert (code == 0) == all(name in chosen for name in matched)


def test_an_onnx_node_that_metadata_names_is_required_of_its_engine_layer(tmp_path):
    from pipeline import api

    info = tmp_path / "layers.json"
    for kernel, wanted in (("sm80_xmma_fprop_sparse_conv_f16f16", 0), ("sm80_xmma_fprop_implicit_gemm_f16f16", 1)):
        layer = {"Name": "__myl_Fc_myl0_1", "LayerType": "gemm", "TacticName": kernel, "Metadata": "[ONNX Layer: /fc/MatMul]"}
        info.write_text(json.dumps({"Layers": [layer]}))
        assert api.require_selected(api.read_log(info), ["/fc/MatMul"])[1] == wanted


def test_a_selected_region_does_not_stand_for_a_node_within_it(tmp_path):
    from pipeline import api

    report = api.read_log(fused_log(tmp_path / "build.log", ["{ForeignNode[a...b]}"], ["{ForeignNode[a...b]}"]))
    assert api.require_selected(report, ["{ForeignNode*"])[1] == 0
    assert api.require_selected(report, ["a"])[1] == 3


def test_a_reformat_of_a_layer_is_not_the_layer(tmp_path):
    from pipeline import api

    kernel = "sm80_xmma_fprop_sparse_conv_f16f16"
    copy = {"Name": "Reformatting CopyNode for Input Tensor 0 to conv1 + relu1", "LayerType": "Reformat", "TacticName": "permutationKernel"}
    info = tmp_path / "layers.json"
    info.write_text(json.dumps({"Layers": [copy, {"Name": "conv1 + relu1", "LayerType": "CaskConvolution", "TacticName": kernel}]}))
    report = api.read_log(info)
    assert [api.require_selected(report, [pattern])[1] for pattern in ("relu1", "*conv1*")] == [0, 0]
    assert api.require_selected(report, ["Reformatting*"])[1] != 0


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


def test_the_hint_for_a_wrong_build_is_not_read_as_a_count():
    assert "the only build is number 0" in run(SAMPLE, "--build", "5", code=2).stderr
    assert "numbered 0 to 1" in run("tests/data/tactics/two_builds_one_file.log", "--build", "-1", code=2).stderr


def test_standard_input_given_twice_is_read_once():
    text = (ROOT / SAMPLE).read_text()
    assert run("-", "-", text=text).stdout == run("-", text=text).stdout
    assert "standard input is empty" in run("-", text="", code=2).stderr


ESCAPE = "\x1b[2J"


@pytest.mark.parametrize("style", ["text", "md", "terminal"])
def test_nothing_that_a_report_quotes_steers_the_terminal(style, capsys):
    from pipeline.records.tactics import Build, Conflict, Finding, LoadedRun, Skipped, Source, TacticReport, Truncated
    from pipeline.report import tactics_md, tactics_rich, tactics_text

    odd = f"x{ESCAPE}y"
    finding = Finding(code="unstable", text=odd, source=0, line=1, names=[odd])
    build = Build(
        id=0, tensorrt=odd, command=f"trtexec --onnx={odd}", hint=odd, machine={"gpu": odd}, precision=[odd], findings=[finding],
        conflicts=[Conflict(code="runs-mixed", layers=[odd], text=odd)], truncated=[Truncated(source=0, line=1, text=odd)],
    )  # fmt: skip
    report = TacticReport(
        sources=[Source(path=odd, sha256=None, kind="log", producer=None)], builds=[build], skipped=[Skipped(path=odd, why=odd, hint=odd)],
        runs=[LoadedRun(source=0, line=1, command=odd, findings=[finding])],
    )  # fmt: skip
    shown = {"text": tactics_text.render, "md": tactics_md.render, "terminal": tactics_rich.show}[style](report) or capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.count("\N{REPLACEMENT CHARACTER}") > 10
    assert "skipped x" in shown


def test_an_error_shows_the_control_characters_of_a_name(tmp_path):
    path = tmp_path / f"x{ESCAPE}y.json"
    path.write_text(json.dumps({"schema": f"sparsegate.{ESCAPE}/1"}))
    said = run(str(path), code=2).stderr
    assert "\x1b" not in said
    assert said.count("\\x1b[2J") == 2
    log = tmp_path / f"x{ESCAPE}y.log"
    log.write_text("&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=n.onnx\n")
    said = run(str(log), "--require", f"{ESCAPE}\a*", code=3).stderr
    assert "no layer matches" in said
    assert not {"\x1b", "\a"} & set(said)


def test_names_go_to_an_output_of_any_encoding(tmp_path):
    log = fused_log(tmp_path / "build.log", ["größer/层", "b"], ["b"])
    for style in ("text", "md", "csv", "json"):
        done = subprocess.run(
            [sys.executable, "-m", "pipeline", "tactics", log, "--format", style], cwd=ROOT, capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode("latin-1")
        assert "größer/\\u5c42" in text.replace("\\\\", "\\")
        assert style != "json" or json.loads(text)["builds"][0]["layers"][0]["name"] == "größer/层"
