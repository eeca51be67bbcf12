"""`sparsegate diff` compares reports and runs, names what to choose where it cannot tell, and imports nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import crafted_run as c
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from pipeline import api
from pipeline.cli import group
from pipeline.errors import InputError
from pipeline.records import io
from pipeline.report import differences


def write_report(path, *builds):
    io.write(path, c.tactic_report(*builds))
    return path


def invoke(*words):
    return CliRunner().invoke(group, ["diff", *map(str, words)])


@pytest.fixture
def reports(tmp_path):
    before = [replace(c.engine_layer(c.BODY), profile_ms=0.30), replace(c.engine_layer(c.TAIL), profile_ms=0.2)]
    old = c.build("sparse", *before, tensorrt="8.6.1")
    new = c.build("sparse", replace(c.engine_layer(c.BODY), profile_ms=0.30), replace(c.dense_won(), profile_ms=0.3))
    return write_report(tmp_path / "old.json", old), write_report(tmp_path / "new.json", new)


def test_environment_comes_first_then_layers_by_time_then_the_next_step(reports):
    lines = invoke(*reports).output.splitlines()
    environment, layers = lines.index("Environment"), lines.index("Layers, by time")
    assert environment < layers
    assert any(line.split() == ["TensorRT", "8.6.1", "10.3.0"] for line in lines)
    assert lines[layers + 2].split()[:3] == ["0.1", "0.2", "0.3"]
    assert "selection, tactic" in lines[layers + 2]
    assert "next: see why /tail/Conv + tail/Relu went dense" in "\n".join(lines)


def test_no_line_is_wider_than_a_terminal_of_80_columns(reports):
    assert max(map(len, differences.diff_text(api.diff(*reports), 80).splitlines())) <= 80


@pytest.mark.parametrize("style", ["md", "json"])
def test_other_formats_hold_every_change(reports, style):
    output = invoke(*reports, "--format", style).output
    if style == "json":
        found = json.loads(output)
        assert found["schema"] == "sparsegate.diff/1"
        assert [change["kinds"] for change in found["changes"]] == [["selection", "tactic", "time"]]
    else:
        assert "| 0.1 | 0.2 | 0.3 | selection, tactic, time |" in output


def test_a_failed_build_and_layers_that_it_does_not_show_are_told(tmp_path):
    line = "[11/30/2026-10:00:01] [I] [TRT] (Sparsity)"
    logs = {"passed": ("a, b", "PASSED"), "fewer": ("b", "PASSED"), "failed": ("b", "FAILED")}
    for name, (layers, result) in logs.items():
        number = layers.count(",") + 1
        (tmp_path / f"{name}.log").write_text(
            "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=a.onnx --sparsity=enable --fp16\n"
            f"{line} Found {number} layer(s) eligible to use sparse tactics: {layers}\n"
            f"{line} Chose {number} layer(s) using sparse tactics:, {layers}\n"
            f"&&&& {result} TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=a.onnx\n"
        )
    fewer, failed = (invoke(tmp_path / "passed.log", tmp_path / name).output for name in ("fewer.log", "failed.log"))
    assert "0 groups of layers changed, 1 did not, 1 not told by one side" in fewer
    assert "not shown by B  sparse  -  a" in fewer
    assert "FAILED" not in fewer
    assert failed.splitlines().index("B FAILED: no engine came of it") < failed.splitlines().index("Layers, by time")
    assert all("nothing to do" not in output for output in (fewer, failed))


def test_a_file_with_several_builds_asks_which(tmp_path, reports):
    both = write_report(tmp_path / "both.json", c.build("sparse"), c.build("sparse", number=1))
    with pytest.raises(InputError, match="holds 2 builds"):
        CliRunner().invoke(group, ["diff", str(both), str(reports[0])], catch_exceptions=False, standalone_mode=False)
    assert invoke(both, both, "--build", 0, "--build", 1).exit_code == 0


def test_runs_are_compared_in_environment_figures_rungs_and_layers(tmp_path):
    before = c.write_run(tmp_path / "a", c.evidence())
    slower = c.measurement(ratios=[c.ratio(1.02, 1.01, 1.03)])
    provenance = replace(c.run().provenance, tensorrt="10.13.0")
    report = c.tactic_report(c.build("sparse", c.dense_won(c.BODY), c.dense_won()))
    after = c.write_run(tmp_path / "b", c.evidence(run=c.run(id="later", provenance=provenance), tactics=report, measure=slower))
    output = invoke(before, after, "--format", "md").output
    assert "| TensorRT | 10.3.0 | 10.13.0 |" in output
    assert "| sparse/dense p50 gpu\\_compute at batch=32 | 0.9x \\[0.88, 0.93\\] | 1.02x \\[1.01, 1.03\\] |" in output
    assert "| body | 6 selected | yes | NO | dense-faster" in output
    assert "| engine batch=32 | 8 faster-engine | yes | NO |" in output
    assert "selection, tactic" in output


def test_three_builds_or_one_run_with_rebuilds_give_stability(tmp_path, reports):
    output = invoke(*reports, reports[0]).output
    assert "1 layer of 2 sparse in some builds, dense in others" in output
    rebuilt = c.tactic_report(c.build("sparse"), c.build("sparse#2", c.engine_layer(c.BODY), c.engine_layer(c.TAIL), number=1))
    run = c.write_run(tmp_path / "r", c.evidence(tactics=rebuilt))
    found = json.loads(invoke(run, "--format", "json").output)
    assert (found["schema"], found["builds"], found["changing"]) == ("sparsegate.stability/1", ["sparse", "sparse#2"], 1)


def test_one_build_is_nothing_to_compare(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "diff", str(write_report(tmp_path / "a.json", c.build()))], capture_output=True, text=True
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "nothing to compare" in done.stderr


def test_diff_of_reports_imports_nothing_heavy(reports):
    code = (
        "import sys; from pipeline.cli import group; group(['diff', *sys.argv[1:]], standalone_mode=False);"
        "heavy = {'torch', 'onnx', 'onnxruntime', 'sklearn', 'modelopt', 'numpy', 'pydantic', 'rich'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, reports)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("later", "kinds"), [((0.40, 0.41, 0.42), ["time"]), ((0.28, 0.41, 0.42), []), ((0.40, 0.41), [])])
def test_a_time_differs_between_runs_only_where_their_passes_tell(tmp_path, later, kinds):
    def run(name, *passes):
        measured = c.measurement(layers=[c.layer_time("sparse", c.BODY, *passes)])
        return c.write_run(
            tmp_path / name, c.evidence(tactics=c.tactic_report(c.build("sparse", c.engine_layer(c.BODY))), measure=measured)
        )

    found = json.loads(invoke(run("a", 0.30, 0.31, 0.29), run("b", *later), "--format", "json").output)
    assert [change["kinds"] for change in found["changes"]] == [kinds] * bool(kinds)
    assert found["same"] == 1 - bool(kinds)


@pytest.mark.parametrize("arm", ["sprase", "sparse#1", "sparse#9"])
def test_an_arm_that_was_not_built_is_refused_and_not_compared_as_one_without_layers(arm, tmp_path, reports):
    run = c.write_run(tmp_path / "run", c.evidence())
    for sources in ((run, run), (run, reports[0]), (run,)):
        with pytest.raises(InputError, match=f"has no arm '{arm}'") as caught:
            if len(sources) == 2:
                api.diff(*sources, arm=arm)
            else:
                api.stability(*sources, arm=arm)
        assert caught.value.hint.startswith("its arms are sparse, ")
