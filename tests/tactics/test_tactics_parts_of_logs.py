"""What a log that was cut or damaged does not prove: `no` and `selected` need whole tables."""

from __future__ import annotations

import pytest

from pipeline import tactics
from pipeline.records.rung import Rung

SPARSE = "sm80_xmma_fprop_sparse_conv_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_stage4_g1_sptensor16x8x32_t1r3s3"
DENSE = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_stage4_g1_tensor16x8x16_t1r3s3"
A, B = "0x00000000000000a1", "0x00000000000000b1"
V, I = (f"[02/03/2026-04:05:06] [{severity}] [TRT] " for severity in "VI")  # noqa: E741
BANNER = "&&&& RUNNING TensorRT.trtexec [TensorRT v100400] # trtexec --onnx=net.onnx --fp16 --sparsity=enable --verbose"


def read(tmp_path, *lines):
    path = tmp_path / "build.log"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return tactics.read([str(path)])


def table(layer, *timed, formats="Half(1)", costs=True):
    winner = min(timed, key=lambda row: row[2])[1]
    return [
        *([f"{V}=============== Computing costs for {layer}"] if costs else []),
        f"{V}*************** Autotuning format combination: {formats} ***************",
        f"{V}--------------- Timing Runner: {layer} (CaskConvolution[0x80000009])",
        *(f"{V}Tactic Name: {kernel} Tactic: {id_} Time: {ms}" for kernel, id_, ms in timed),
        f"{V}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {winner}",
    ]


def layer_of(report, name):
    return next(layer for build in report.builds for layer in build.layers if layer.name == name)


def test_the_last_layer_of_a_log_that_ends_within_its_tables_is_neither_denied_nor_decided(tmp_path):
    layer = layer_of(read(tmp_path, BANNER, *table("a", (DENSE, A, 0.1))), "a")
    assert layer.timed is Rung.UNKNOWN
    assert layer.selected is Rung.UNKNOWN


def test_choices_of_the_last_layer_before_a_cut_select_nothing(tmp_path):
    """More combinations of it may follow, in which a dense tactic wins."""
    report = read(tmp_path, BANNER, *table("b", (DENSE, A, 0.1)), *table("a", (DENSE, A, 0.1), (SPARSE, B, 0.05)))
    assert report.builds[0].selected == []
    assert layer_of(report, "b").timed is Rung.NO


@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_the_first_layer_of_a_log_that_begins_within_its_tables_is_neither_denied_nor_decided(tmp_path, missing):
    """Whatever line of a combination is the first: the layer may have had others before."""
    rest = (table("a", (DENSE, A, 0.1), costs=False) + table("a", (DENSE, A, 0.1), formats="Half(2)", costs=False))[missing:]
    layer = layer_of(read(tmp_path, *rest, *table("b", (DENSE, A, 0.1)), f"{V}Engine generation completed in 1 seconds."), "a")
    assert layer.timed is Rung.UNKNOWN
    assert layer.selected is Rung.UNKNOWN


@pytest.mark.parametrize("damage", [("Tactic Name", "Tact\ufffdc Name"), ("Tactic: 0x", "Tactic: \ufffdx"), ("Time: ", "Ti\0me: ")])
def test_a_damaged_line_among_the_timed_tactics_leaves_timed_unknown(tmp_path, damage):
    lines = table("a", (SPARSE, B, 0.2), (DENSE, A, 0.1))
    lines[3] = lines[3].replace(*damage)
    end = [f"{V}Engine generation completed in 1 seconds."]
    assert layer_of(read(tmp_path, BANNER, *lines, *end), "a").timed is Rung.UNKNOWN


@pytest.mark.parametrize("bad", ["\ufffd", "\0"])
def test_a_piece_with_a_bracket_that_nothing_opened_is_no_name(tmp_path, bad):
    found = f"{I}(Sparsity) Found 2 layer(s) eligible to use sparse tactics: b + PWN{bad}PWN(x), PWN(y)), c"
    build = read(tmp_path, found).builds[0]
    assert "PWN(y))" not in {layer.name for layer in build.layers}
    assert [layer.name for layer in build.layers] == ["c"]


def test_a_region_whose_inner_layers_are_listed_is_not_denied(tmp_path):
    region = "{ForeignNode[a...c]}"
    report = read(
        tmp_path,
        BANNER,
        f"{V}=============== Computing costs for {region}",
        f"{V}*************** Autotuning format combination: Half(1) ***************",
        f"{V}--------------- Timing Runner: {region} (Myelin[0x80000023])",
        f"{I}(Sparsity) Found 1 layer(s) eligible to use sparse tactics: b/MatMul",
        f"{I}(Sparsity) Chose 1 layer(s) using sparse tactics:, b/MatMul",
        f"{V}Tactic: 0x0000000000000000 Time: 0.3",
        f"{V}>>>>>>>>>>>>>>> Chose Runner Type: Myelin Tactic: 0x0000000000000000",
        f"{I}Engine generation completed in 1 seconds.",
    )
    layer = layer_of(report, region)
    assert layer.eligible is Rung.UNKNOWN
    assert layer.selected is Rung.UNKNOWN


def test_layer_info_that_a_run_with_a_loaded_plan_dumps_is_read(tmp_path):
    dump = (
        f"Name: a, LayerType: CaskConvolution, Inputs: [], HasSparseWeights: 1, TacticName: {SPARSE}, TacticValue: {A}, StreamId: 0, "
        "Metadata: [ONNX Layer: a]"
    )
    report = read(
        tmp_path,
        "&&&& RUNNING TensorRT.trtexec [TensorRT v100400] # trtexec --loadEngine=net.plan --dumpLayerInfo",
        "[02/03/2026-04:05:06] [I] Sparsity: Disabled",
        "[02/03/2026-04:05:06] [I] Engine loaded in 0.02 sec.",
        "[02/03/2026-04:05:06] [I] Layers:",
        dump,
    )
    assert report.builds[0].selected == ["a"]
    assert report.builds[0].sparsity is None


def test_no_name_cut_by_dots_is_a_layer_of_a_large_log(tmp_path):
    names = [f"stage{i}/block/left/Conv + stage{i}/block/left/add + stage{i}/block/left/relu + tail" for i in range(40)]
    lines = []
    for name in names:
        rows = [(kernel, f"0x{k:016x}", 0.1 + k) for k, kernel in enumerate(["sm80_xmma_dense_a", "sm80_xmma_sparse_b"] * 90)]
        lines += table(name, *rows)
    width = 118
    report = read(tmp_path, *(line if len(line) <= width else line[: width - 3] + "..." for line in lines))
    assert (tmp_path / "build.log").stat().st_size > 1 << 19
    assert {layer.name for layer in report.builds[0].layers} <= set(names)


@pytest.mark.parametrize("width", [110, 120, 145, 150, 162])
def test_a_verbose_log_cut_at_a_column_gives_no_cut_name_or_time(tmp_path, width):
    """Where a line of the longest length breaks off within its form; else nothing tells a cut log from a whole one."""
    names = [f"stage{i}/block/left/Conv + stage{i}/block/left/add + stage{i}/block/left/relu + tail" for i in range(6)]
    lines = [line for name in names for line in table(name, (DENSE, A, 0.15432), (SPARSE, B, 0.25432))]
    report = read(tmp_path, *(line[:width] for line in lines))
    for layer in report.builds[0].layers:
        assert layer.name in names
        assert layer.best is None or {best.ms for best in (layer.best.sparse, layer.best.dense) if best} <= {0.15432, 0.25432}


def test_a_chosen_list_of_other_layers_denies_none_of_the_eligible_ones(tmp_path):
    """The lines between them, which end the one build and begin the next, are missing."""
    found = f"{I}(Sparsity) Layers eligible for sparse math: a, b"
    chose = f"{I}(Sparsity) TRT inference plan picked sparse implementation for layers: c"
    report = read(tmp_path, found, chose)
    assert [layer_of(report, name).selected for name in ("a", "b")] == [Rung.UNKNOWN, Rung.UNKNOWN]


def test_two_lists_that_end_at_one_column_deny_nothing(tmp_path):
    found = f"{I}(Sparsity) Layers eligible for sparse math: " + ", ".join(f"block{i}/Conv + block{i}/Relu" for i in range(9))
    chose = f"{I}(Sparsity) TRT inference plan picked sparse implementation for layers: " + ", ".join(
        f"block{i}/Conv + block{i}/Relu" for i in range(9)
    )
    build = read(tmp_path, BANNER, found[:200], chose[:200]).builds[0]
    assert {layer.selected for layer in build.layers} <= {Rung.YES, Rung.UNKNOWN}
    assert {layer.name for layer in build.layers} <= {f"block{i}/Conv + block{i}/Relu" for i in range(9)}
