"""Names in tables: whole in a pipe, on a terminal shortened in the middle only as far as it demands, and never two alike."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import crafted_run as c
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from onnx import helper, numpy_helper

from pipeline import report
from pipeline.records.check import CheckedLayer, CheckedModel, CheckReport, CheckTotals, Target
from pipeline.records.rung import Rung
from pipeline.report import check_text, differences
from pipeline.report.table import columns, text_table
from pipeline.report.words import PipeWidth, cells
from pipeline.verdict import diagnosis, ladder

PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
NAMES = [f"model.layers.{block}.{part}" for block in range(12) for part in PARTS]


def checked(*names: str) -> CheckReport:
    layers = [
        CheckedLayer(
            node=name, graph="", op="MatMul", weight=f"{name}.weight", operand=1, shape=[4096, 4096], axis=0, dtype="float16",
            two_four=True, groups=4096 * 1024, eligible=Rung.UNKNOWN,
        )
        for name in names or ("first", "second")
    ]  # fmt: skip
    totals = CheckTotals(layers=len(layers), two_four=len(layers), eligible=0)
    return CheckReport(model=CheckedModel(path="m.onnx", sha256="0" * 64), target=Target(), layers=layers, totals=totals)


@pytest.mark.parametrize("width", [40, 80, 100, 120])
def test_layers_of_a_language_model_never_read_alike(width):
    rows = check_text.render(checked(*NAMES), width).splitlines()[1 : 1 + len(NAMES)]
    assert len({row.split()[0] for row in rows}) == len({row.split()[2] for row in rows}) == len(NAMES)


def test_names_stand_whole_where_the_terminal_is_wide_enough_and_in_a_pipe():
    for width in (200, PipeWidth(80)):
        text = check_text.render(checked(*NAMES), width)
        assert all(f"{name} " in text for name in NAMES) and "…" not in text


def test_a_narrow_terminal_shortens_no_more_than_it_must():
    text = check_text.render(checked(*NAMES), 120)
    assert "…" in text
    assert max(map(cells, text.splitlines()[: len(NAMES) + 1])) in (119, 120)


@given(st.lists(st.text("ab.01", min_size=1, max_size=30), min_size=1, max_size=12, unique=True), st.integers(10, 60))
def test_names_that_differ_are_shown_to_differ(names, width):
    shown = [line.split("|")[0] for line in text_table(columns("@name", "rest"), [[name, "|x"] for name in names], width)[1:]]
    assert len(set(shown)) == len(names)


@given(st.lists(st.text("ab.é漢", min_size=1, max_size=30), min_size=1, max_size=8), st.integers(1, 60))
def test_a_pipe_gets_every_name_whole(names, width):
    lines = text_table(columns("@name", "~text"), [[name, name] for name in names], PipeWidth(width))
    assert all(line.split() == [name, name] for line, name in zip(lines[1:], names, strict=True))


def test_reports_and_diffs_in_a_pipe_shorten_nothing():
    names = [f"backbone.stages.{i}.blocks.0.downsample.projection" for i in range(3)]
    layers = [c.layer(name) for name in names]
    export = c.exported(layers=[c.ExportedLayer(layer=item, proof=c.YES, text="x") for item in layers])
    evidence = c.evidence(train=None, freeze=None, export=export)
    evidence = replace(evidence, gate=c_verdict(evidence))
    text = report.run_text(evidence, PipeWidth(80))
    assert all(f"{name} " in text for name in names)
    from pipeline.verdict.diff_runs import diff_runs

    assert "…" not in differences.diff_text(diff_runs(evidence, replace(evidence, measure=None), "sparse"), PipeWidth(80))


def c_verdict(evidence):
    from pipeline.records.verdict import RuleResult, Verdict

    return Verdict(outcome=RuleResult.PASS, rules=[], ladder=ladder.build(evidence), findings=diagnosis.diagnose(evidence))


def model_of_blocks(path):
    """An ONNX file whose layers have a language model's names."""
    rng, names = np.random.default_rng(0), NAMES[:21]
    weights = [numpy_helper.from_array(rng.normal(size=(16, 16)).astype(np.float32), f"{name}.weight") for name in names]
    edges = ["x", *(f"e{i}" for i in range(len(names)))]
    nodes = [helper.make_node("MatMul", [edges[i], f"{name}.weight"], [edges[i + 1]], name=name) for i, name in enumerate(names)]
    info = [helper.make_tensor_value_info(edge, onnx.TensorProto.FLOAT, [4, 16]) for edge in (edges[0], edges[-1])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], weights)), path)
    return names


def on_a_terminal(words, wide):
    """What a command writes to a terminal so many columns wide."""
    import fcntl
    import struct
    import termios

    main, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, wide, 0, 0))
    made = subprocess.Popen(
        [sys.executable, "-m", "pipeline", *words], stdout=end, stderr=end, stdin=end, env=os.environ | {"NO_COLOR": "1"}
    )
    os.close(end)
    seen = b""
    try:
        while piece := os.read(main, 65536):
            seen += piece
    except OSError:
        pass
    finally:
        os.close(main)
    assert made.wait() == 0, seen
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["check", "prune"])
def test_the_command_shortens_on_a_terminal_alone(tmp_path, command):
    names = model_of_blocks(tmp_path / "m.onnx")
    words = [command, str(tmp_path / "m.onnx"), *(["-o", str(tmp_path / "out.onnx")] if command == "prune" else [])]
    piped = subprocess.run([sys.executable, "-m", "pipeline", *words], capture_output=True, text=True, check=True).stdout
    assert all(f"{name} " in piped and f"{name}.weight " in piped for name in names)
    shown = on_a_terminal(words, 90).splitlines()[1 : 1 + len(names)]
    assert "…" in shown[0]
    assert len({line.split()[0] for line in shown}) == len(names)
