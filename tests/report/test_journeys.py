"""What people come with, and what they leave with: the first screen answers, the last line says what to do next."""

from __future__ import annotations

import json
from pathlib import Path

import crafted_run as c
import journey_models as models
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from pipeline.cli import group
from pipeline.records import io

DATA = Path(__file__).resolve().parents[1] / "data"


def sparsegate(*words, code=0):
    result = CliRunner(env={"COLUMNS": ""}).invoke(group, [*map(str, words)])
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def last_paragraph(text):
    return " ".join(text.rstrip("\n").split("\n\n")[-1].split())


def screen(text, lines=24):
    return "\n".join(text.splitlines()[:lines])


class TestIHaveATrtexecLogWhichLayersWentSparse:
    def test_counts_and_the_lost_layers_with_both_times(self):
        text = screen(sparsegate("tactics", DATA / "tactics" / "trt86_verbose_dense_won.log"))
        assert "1 eligible, 0 selected" in text
        assert "neck.conv + neck.relu" in text
        assert "0.031" in text
        assert "0.0352" in text

    def test_what_this_log_cannot_tell_and_which_flags_would(self):
        text = sparsegate("tactics", DATA / "tactics" / "trt103_count_and_list_disagree.log")
        assert "3 eligible, 0 selected, 2 disputed" in text
        for flag in ("--verbose", "--profilingVerbosity=detailed", "--exportLayerInfo"):
            assert flag in text
        assert text.splitlines()[-1].strip().startswith("next: ")


class TestWillItPayBeforeISpendWeeksOnTraining:
    def test_an_upper_bound_then_a_probe_that_checks_two_four(self, tmp_path):
        model = models.small_network(tmp_path / "dense.onnx")
        text = sparsegate("check", model, "--estimate", "--batch", 32, "--gpu", "A30")
        assert "at most " in screen(text, 5)
        assert "SG102" in text
        assert last_paragraph(text).startswith("next: measure before training: sparsegate prune ")
        sparsegate("prune", model, "-o", tmp_path / "probe.onnx")
        found = json.loads(sparsegate("check", tmp_path / "probe.onnx", "--format", "json"))
        assert {layer["node"]: layer["two_four"] for layer in found["layers"]} == {"stem": False, "wide": True, "wider": True, "head": True}

    def test_small_batches_are_said_to_be_bound_by_memory(self, tmp_path):
        model = models.small_network(tmp_path / "dense.onnx")
        words = ("check", model, "--estimate", "--gpu", "A30", "--format", "json", "--batch")
        one, many = (json.loads(sparsegate(*words, batch)) for batch in (1, 256))
        assert one["gpus"][0]["memory_bound"] > many["gpus"][0]["memory_bound"]
        assert "not seen in practice" in " ".join(one["notes"])


class TestIsThisCheckpointStillSparse:
    def test_the_layer_where_it_broke_and_the_stage_that_saw_it(self, tmp_path):
        broken = [replace(item, proof=c.NO, text="3 groups of body.weight grew back") for item in c.frozen().layers[:1]]
        run = c.write_run(tmp_path, c.evidence(freeze=c.frozen(layers=[*broken, c.frozen().layers[1]])))
        text = sparsegate("report", run)
        assert "2 frozen disproved for body: 3 groups of body.weight grew back" in text
        assert "proven above the gap: body: 3 exported" in text
        assert "SG501 Masked weights are not zero" in text
        assert "2 frozen          NO  3 groups of body.weight grew back" in sparsegate("explain", run, "body")


class TestEverythingIsTwoFourInNetronAndNothingIsEligible:
    @pytest.mark.parametrize(
        ("make", "options", "rule", "words"),
        [
            (lambda path: models.matmul(path, axis=1), (), "SG101", "2:4 along axis 1, its operator sums over axis 0"),
            (models.grouped, ("--tensorrt", "8.6"), "SG109", "4 groups"),
            (lambda path: models.matmul(path, axis=0, dtype="float32"), ("--typing", "strong"), "SG107", "float32"),
            (models.int8_without_output_quantizer, ("--tensorrt", "10.14"), "SG204", "INT8"),
            (lambda path: models.matmul(path, axis=0), ("--tensorrt", "8.4"), "SG113", "Myelin"),
        ],
        ids=["axis", "groups", "fp32 build", "q/dq epilogue", "myelin in 8.x"],
    )
    def test_check_names_the_rule(self, tmp_path, make, options, rule, words):
        text = sparsegate("check", make(tmp_path / "m.onnx"), *options)
        assert rule in screen(text)
        assert words in text
        assert last_paragraph(text).startswith("next: ")


@pytest.mark.xdist_group("quickstart")
class TestGateOurReleaseInCI:
    def test_the_exit_code_is_the_verdict_and_the_summary_fits_a_pull_request(self, quickstart_run):
        text = sparsegate("report", quickstart_run.folder, "--format", "md")
        assert text.startswith("# ")
        assert "## Budgets" in text.split("## Ladder")[0]
        assert len(text) < 65_536  # GitHub's limit of a comment
        outcome = quickstart_run.evidence.gate.outcome.value
        code = {"pass": 0, "fail": 1, "inconclusive": 3}[outcome]
        assert "<testsuite" in sparsegate("gate", quickstart_run.folder, "--format", "junit", code=code)


class TestWeUpgradedTensorRTAndLostEightPercent:
    def test_environment_then_the_layers_that_cost_most(self, tmp_path):
        layers = {"body": (0.30, 0.30), "tail": (0.20, 0.34), "stem": (0.10, 0.11)}
        items = {"body": c.BODY, "tail": c.TAIL, "stem": c.STEM}
        before = [replace(c.engine_layer(items[name]), profile_ms=old) for name, (old, _) in layers.items()]
        after = [replace(c.engine_layer(items[name]), profile_ms=new) for name, (_, new) in layers.items()]
        after[1] = replace(c.dense_won(), profile_ms=layers["tail"][1])
        old, new = tmp_path / "old.json", tmp_path / "new.json"
        io.write(old, c.tactic_report(c.build("sparse", *before, tensorrt="8.6.1")))
        io.write(new, c.tactic_report(c.build("sparse", *after, tensorrt="10.13.0")))
        text = sparsegate("diff", old, new)
        assert "layers 3 -> 3, sparse 3 -> 2, 0.6 -> 0.75 ms (profile)" in text
        assert text.index("TensorRT  8.6.1  10.13.0") < text.index("selection, tactic, time")
        rows = text[text.index("delta ms") :].splitlines()[1:3]
        assert [row.split()[0] for row in rows] == ["0.14", "0.01"]
        assert last_paragraph(text).startswith("next: see why /tail/Conv + tail/Relu went dense: its reasons are in")

    def test_two_logs_of_different_versions_are_compared(self):
        log = DATA / "tactics" / "two_builds_one_file.log"
        text = " ".join(sparsegate("diff", log, log, "--build", 0, "--build", 1).split())
        assert "TensorRT 8.4.2 10.14.1" in text
        assert "selection dense sparse a1" in text
        assert "shows some of its layers only" in text

    def test_logs_of_two_networks_are_told(self):
        logs = [DATA / "tactics" / name for name in ("trt86_verbose_dense_won.log", "trt1014_two_passes.log")]
        assert last_paragraph(sparsegate("diff", *logs)) == "next: A and B share no ONNX node: see whether they are builds of one network"


class TestTheKernelIsFasterOurServiceIsNot:
    def test_the_bound_of_the_profile_and_where_the_gain_is_lost(self, tmp_path):
        def times(arm, body):
            return [c.layer_time(arm, c.BODY, *[body] * 5), c.layer_time(arm, c.STEM, *[14.0] * 5)]

        ratios = [c.ratio(0.85, 0.84, 0.86), c.ratio(1.0, 0.98, 1.02, metric="host_latency")]
        measured = c.measurement(layers=[*times("sparse", 4.0), *times("twin", 6.0), *times("dense", 6.0)], ratios=ratios)
        text = " ".join(sparsegate("report", c.write_run(tmp_path, c.evidence(measure=measured))).split())
        assert "at most 1.176x (1.429x if they took no time at all): 6 of 20 ms in the profile of the twin arm" in text
        assert "SG517 Layers are faster, the engine or the request is not" in text
        assert "but sparse/dense 1.000x [0.980, 1.020] (p50 host_latency, n=20)" in text
