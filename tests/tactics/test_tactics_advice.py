"""What `tactics` proposes next is never what was done already."""

from __future__ import annotations

import json

import pytest

from pipeline import codes, tactics
from pipeline.records.rung import Rung
from pipeline.records.tactics import Build, Finding, Reason, Tactic, TacticLayer
from pipeline.report.tactics_advice import STEPS, advice
from pipeline.report.tactics_text import eligible_layers, render

BANNER = "&&&& RUNNING TensorRT.trtexec [TensorRT v100300] # trtexec --onnx=my.onnx --sparsity=enable{}\n"
LISTS = (
    "[I] [TRT] (Sparsity) Found 2 layer(s) eligible to use sparse tactics: a, b\n"
    "[I] [TRT] (Sparsity) Chose 1 layer(s) using sparse tactics:, a\n"
)
VERBOSE_LINE = "[11/30/2026-10:11:12] [V] [TRT] Trying to load shared library libcudnn.so\n"


def read(tmp_path, text, layer_info=None):
    log = tmp_path / "build.log"
    log.write_text(text)
    files = [str(log)]
    if layer_info is not None:
        (tmp_path / "layers.json").write_text(json.dumps({"Layers": layer_info}))
        files.append(str(tmp_path / "layers.json"))
    (build,) = tactics.read(files).builds
    return build


NAMED = [{"Name": name, "LayerType": "CaskConvolution", "TacticName": "sm80_xmma_fprop_implicit_gemm_f16f16"} for name in "ab"]


def test_a_log_of_lists_alone_lacks_times_and_kernel_names(tmp_path):
    hint = read(tmp_path, BANNER.format("") + LISTS).hint
    assert "build with --verbose" in hint and "--exportLayerInfo" in hint


def test_layer_info_that_was_given_is_not_asked_for(tmp_path):
    hint = read(tmp_path, BANNER.format("") + LISTS, NAMED).hint
    assert "build with --verbose" in hint and "--exportLayerInfo" not in hint


def test_a_verbose_log_is_not_asked_to_be_verbose(tmp_path):
    hint = read(tmp_path, BANNER.format(" --verbose") + VERBOSE_LINE + LISTS).hint
    assert "--verbose" not in hint and "timing cache" in hint and "--exportLayerInfo" in hint


def test_a_log_without_messages_whose_command_was_verbose_was_filtered(tmp_path):
    text = BANNER.format(" --verbose") + "[11/30/2026-10:11:12] [I] Engine built in 1.0 sec.\n"
    assert "though --verbose was given" in read(tmp_path, text).hint


def test_a_flag_that_was_on_is_not_said_to_have_been_off(tmp_path):
    text = BANNER.format("") + "[I] [TRT] Detected 1 inputs.\n[I] Engine built in 1.0 sec.\n"
    hint = read(tmp_path, text).hint
    assert "sparsity was enabled" in hint and "--sparsity=enable" not in hint


def build(code, **facts):
    """A build with one eligible layer that stays dense for one reason."""
    command = facts.pop("command", "trtexec --onnx=my.onnx")
    layer = TacticLayer(
        id="a", name="a", eligible=Rung.YES, selected=Rung.UNKNOWN, reasons=[Reason(code=code, text="")], **facts.pop("layer", {})
    )
    return Build(id=0, command=command, layers=[layer], **facts)


INFO = {"tactic": Tactic(name="k", kind="unknown", id="1", runner=None, how="layer-info")}


@pytest.mark.parametrize(
    ("code", "done", "words"),
    [
        ("names-unknown", {"layer": INFO}, "--exportLayerInfo"),
        ("sources-disagree", {"layer": INFO}, "detailed decides"),
        ("myelin-region", {"layer": INFO}, "layer info of TensorRT 10"),
        ("myelin-region", {"layer": {"profile_ms": 0.5}}, "a profile shows"),
        ("timed-from-cache", {"log_level_seen": "verbose"}, "--verbose"),
        ("repeat-of", {"command": "trtexec --noBuilderCache"}, "--noBuilderCache"),
        ("fp32-only-build", {"typing": "strong"}, "--fp16"),
    ],
)
def test_a_reasons_step_that_was_taken_is_not_proposed_again(code, done, words):
    assert words in " ".join(advice(build(code), build(code).layers))
    after = build(code, **done)
    assert words not in " ".join(advice(after, after.layers))


@pytest.mark.parametrize(
    ("code", "flag"),
    [
        ("enqueue-bound", "--useCudaGraph"),
        ("transfer-bound-inputs", "--noDataTransfers"),
        ("transfer-bound-outputs", "--noDataTransfers"),
        ("unstable", "--useSpinWait"),
    ],
)
def test_a_findings_option_that_was_given_is_not_proposed_again(code, flag):
    found = [Finding(code=code, text="", source=0, line=1)]
    assert flag in " ".join(advice(Build(id=0, command="trtexec", findings=found), []))
    assert flag not in " ".join(advice(Build(id=0, command=f"trtexec {flag}", findings=found), []))


def test_everything_done_leaves_no_empty_line():
    done = build("myelin-region", layer=INFO | {"profile_ms": 0.5})
    assert advice(done, done.layers) == []


def test_the_model_of_the_command_is_the_one_to_check():
    found = build("no-sparse-candidate", command="trtexec --onnx=my.onnx")
    assert advice(found, found.layers)[0].endswith("sparsegate check my.onnx")


def test_every_step_belongs_to_a_known_code_and_is_in_the_report(tmp_path):
    assert set(STEPS) <= {code.id for code in (*codes.REASONS, *codes.FINDINGS)}
    (tmp_path / "build.log").write_text(BANNER.format("") + LISTS)
    report = tactics.read([str(tmp_path / "build.log")])
    assert all(f"next: {step}" in render(report) for step in advice(report.builds[0], eligible_layers(report.builds[0])))
