"""Forms that other programs print around TensorRT's messages, and lines of a build that are cut: never a false name or class."""

from __future__ import annotations

import json
import time

import pytest

from pipeline import tactics
from pipeline.errors import InputError
from pipeline.records.rung import Rung
from pipeline.tactics.builds import onnx_nodes
from pipeline.tactics.kernels import classify
from pipeline.tactics.prefixes import head
from pipeline.tactics.require import unmet

SPARSE = "sm80_xmma_fprop_sparse_conv_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_stage4_g1_sptensor16x8x32_t1r3s3"
DENSE = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_stage4_g1_tensor16x8x16_t1r3s3"
A, B = "0x00000000000000a1", "0x00000000000000b1"
V, I, E = (f"[02/03/2026-04:05:06] [{severity}] [TRT] " for severity in "VIE")  # noqa: E741
OWN = "[02/03/2026-04:05:06] [I] "
FOUND = "(Sparsity) Found 2 layer(s) eligible to use sparse tactics: a/Conv, b/Conv"
CHOSE = "(Sparsity) Chose 1 layer(s) using sparse tactics:, b/Conv"
FORMAT = "Half(1,2:8,3,4) -> Half(1,2:8,3,4)"


def read(tmp_path, *lines, end="\n"):
    path = tmp_path / "build.log"
    path.write_text("\n".join(lines) + end)
    return tactics.read([str(path)])


def build_of(tmp_path, *lines, end="\n"):
    (build,) = read(tmp_path, *lines, end=end).builds
    return build


def banner(command):
    return f"&&&& RUNNING TensorRT.trtexec [TensorRT v100400] # trtexec {command}"


def begin(layer):
    return [
        f"{V}=============== Computing costs for {layer}",
        f"{V}*************** Autotuning format combination: {FORMAT} ***************",
        f"{V}--------------- Timing Runner: {layer} (CaskConvolution[0x80000009])",
    ]


def timed(kernel, id_, ms):
    return f"{V}Tactic Name: {kernel} Tactic: {id_} Time: {ms}"


@pytest.mark.parametrize(
    "before",
    [
        "2026-02-03T04:05:06Z I 9187 logging.cc:49] ",
        "[trt_node-1] [INFO] [1712345678.123456789] [trt_node]: ",
        "1712345678.1234567 [container_mt-2] [I] [TRT] ",
        "2026-02-03 04:05:06,123 - torch_tensorrt [TensorRT Conversion Context] - INFO - ",
        "2026-02-03 04:05:06 INFO: ",
        "INFO: ../nvdsinfer/nvdsinfer_func_utils.cpp:39 [TRT]: ",
        "[U] ",
    ],
)
def test_a_summary_is_read_behind_other_programs_prefixes(tmp_path, before):
    build = build_of(tmp_path, before + FOUND, before + CHOSE, before + "done")
    assert (build.eligible, build.selected, build.truncated) == (["a/Conv", "b/Conv"], ["b/Conv"], [])


TRITON = "I0516 08:25:52.973930 9187 logging.cc:46] "


def test_messages_that_triton_prints_as_json_strings_are_read(tmp_path):
    name = 'say "a" \\ b/Conv'
    dump = f"Engine Layer Information:\nLayer(CaskConvolution): {name}, Tactic: {A}, x[Half(1)] -> y[Half(1)]"
    messages = [f"(Sparsity) Layers eligible for sparse math: {name}, c", dump]
    build = build_of(tmp_path, *(TRITON + json.dumps(message) for message in messages))
    assert build.eligible == [name, "c"]
    assert {layer.name: layer.tactic and layer.tactic.id for layer in build.layers} == {name: A, "c": None}


def test_a_large_log_of_json_strings_has_no_layer_whose_name_ends_in_a_quotation_mark(tmp_path):
    lines = []
    for i in range(40):
        lines += [*begin(f"layer{i}"), *(timed(kernel, f"0x{k:016x}", 0.1 + k) for k, kernel in enumerate([DENSE, SPARSE] * 60))]
        lines.append(f"{V}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x{0:016x}")
    build = build_of(tmp_path, *(TRITON + json.dumps(line.removeprefix(V)) for line in lines))
    assert (tmp_path / "build.log").stat().st_size > 1 << 19
    assert [layer.name for layer in build.layers] == [f"layer{i}" for i in range(40)]
    assert {(layer.candidates.sparse, layer.candidates.dense) for layer in build.layers} == {(60, 60)}


def test_a_message_whose_closing_quotation_mark_is_missing_was_cut(tmp_path):
    build = build_of(tmp_path, TRITON + f'"{FOUND}"', TRITON + f'"{CHOSE[:-2]}', end="")
    assert build.selected == []
    assert [cut.text for cut in build.truncated] == ["b/Co"]


def test_nuls_between_prefix_and_message_hide_no_message(tmp_path):
    build = build_of(tmp_path, I + "\0\0" + FOUND, I + CHOSE + "\0")
    assert (build.eligible, build.selected) == (["a/Conv", "b/Conv"], ["b/Conv"])


@pytest.mark.parametrize(
    "line",
    [
        E + "IBuilder::buildSerializedNetwork: Error Code: 10: Internal Error (Could not find any implementation for node a.)",
        "[TensorRT] ERROR: ../builder/tacticOptimizer.cpp (1820) - TRTInternal Error in computeCosts: 0 "
        "(Could not find any implementation for node a.)",
        "[!] Invalid Engine. Please ensure the engine was built correctly",
    ],
)
def test_an_error_that_ended_a_build_is_a_failure(tmp_path, line):
    assert build_of(tmp_path, *begin("a"), timed(SPARSE, A, 0.1), line).result == "failed"


def test_a_warning_about_an_implementation_is_no_failure(tmp_path):
    line = V + "Could not find any implementation for node a, another way is tried"
    assert build_of(tmp_path, *begin("a"), line, OWN + "Engine built in 1 sec.").result == "passed"


def dumped(name, kernel, id_):
    return (
        f"Name: {name}, LayerType: CaskConvolution, Inputs: [], ParameterType: Convolution, HasSparseWeights: 1, TacticName: {kernel}, "
        f"TacticValue: {id_}, StreamId: 0, Metadata: [ONNX Layer: {name}]"
    )


def test_dumped_layer_info_does_not_show_that_the_log_is_verbose(tmp_path):
    lines = [I + FOUND, I + CHOSE, OWN + "Layers:", dumped("a/Conv", DENSE, A), dumped("b/Conv", SPARSE, B)]
    build = build_of(tmp_path, banner("--onnx=m --sparsity=enable --dumpLayerInfo"), *lines)
    assert build.log_level_seen == "info"
    assert "--verbose" in build.hint
    assert build.selected == ["b/Conv"]


@pytest.mark.parametrize(
    ("metadata", "nodes"),
    [
        ("[ONNX Layer: a]\x1e[ONNX Layer: b]", ["a", "b"]),
        ("[ONNX Layer: a][ONNX Layer: b]", ["a", "b"]),
        ("[ONNX Layer: a [x]]\x1e[ONNX Layer: (Unnamed Layer* 12) [Shuffle]]", ["a [x]", "(Unnamed Layer* 12) [Shuffle]"]),
        ("[ONNX Layer: a[0]/Conv][ONNX Layer: b]", ["a[0]/Conv", "b"]),
    ],
)
def test_names_of_nodes_in_metadata_may_hold_brackets(metadata, nodes):
    assert onnx_nodes(metadata) == nodes


@pytest.mark.parametrize("end", ["...", "…", "\ufffd"])
def test_a_cut_kernels_name_is_dense_for_no_reason(end):
    assert classify("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_" + end) == "unknown"
    assert classify("sm90_xmma_sparse_gemm_f16f16" + end) == "sparse"


@pytest.mark.parametrize("width", range(60, 200, 7))
@pytest.mark.parametrize("two_lines", [False, True])
def test_no_line_cut_by_dots_gives_a_name_a_time_or_a_class(tmp_path, width, two_lines):
    names = [f"stage{i}/block/left/Conv + stage{i}/block/left/add + stage{i}/block/left/relu" for i in range(4)]
    kernels = [SPARSE, DENSE]
    lines = []
    for name in names:
        lines += begin(name)
        for i, kernel in enumerate(kernels):
            id_ = f"0x{i + 1:016x}"
            two = [f"{V}{name} Set Tactic Name: {kernel} Tactic: {id_}", f"{V}Tactic: {id_} Time: 0.{i + 1}234"]
            lines += two if two_lines else [timed(kernel, id_, f"0.{i + 1}234")]
        lines += [f"{V}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x{1:016x}"]
    lines += [f"Layer(CaskConvolution): {name}, Tactic: 0x{1:016x}, x[Half(1)] -> y[Half(1)]" for name in names]
    lines += [OWN + "Engine built in 1 sec."]
    build = build_of(tmp_path, *(line if len(line) <= width else line[: width - 3] + "..." for line in lines))
    for layer in build.layers:
        assert layer.name in names
        assert layer.selected is not Rung.NO
        assert layer.tactic is None or layer.tactic.name in (None, SPARSE)
        assert layer.best is None or {best.ms for best in (layer.best.sparse, layer.best.dense) if best} <= {0.1234, 0.2234}


def test_lines_of_the_dump_that_were_torn_into_one_give_no_name(tmp_path):
    one, two = (f"Layer(CaskConvolution): {name}, Tactic: {A}, x[Half(1)] -> y[Half(1)]" for name in ("a", "b"))
    build = build_of(tmp_path, V + "Engine Layer Information:", one + two, OWN + "Engine built in 1 sec.")
    assert build.layers == []
    assert len(build.truncated) == 1


def test_a_time_at_the_end_of_a_cut_file_is_no_time(tmp_path):
    build = build_of(tmp_path, *begin("a"), timed(DENSE, A, 0.5), timed(SPARSE, B, 0.1), end="")
    (layer,) = build.layers
    assert layer.best.sparse is None
    assert layer.timed is not Rung.YES


def test_the_rest_of_a_cut_line_names_no_layer(tmp_path):
    rest = f"block1.relu (CaskConvolution[0x80000009]) profiling completed in 0.1 seconds. Fastest Tactic: {A} Time: 0.1"
    build = build_of(tmp_path, rest, f"{V}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {A}", I + FOUND, I + CHOSE)
    assert {layer.name for layer in build.layers} == {"a/Conv", "b/Conv"}


def test_a_chosen_list_behind_the_end_of_a_build_is_of_another_one(tmp_path):
    """The eligible list of the second build is missing."""
    report = read(tmp_path, I + FOUND, I + CHOSE, OWN + "Engine built in 1 sec.", I + CHOSE.replace("b/Conv", "c/Conv"))
    assert [build.selected for build in report.builds] == [["b/Conv"], ["c/Conv"]]
    assert [build.conflicts for build in report.builds] == [[], []]


def test_the_inspectors_answers_layer_by_layer_are_layer_info(tmp_path):
    layers = [{"Name": name, "LayerType": "CaskConvolution", "TacticName": kernel} for name, kernel in (("a", SPARSE), ("b", DENSE))]
    for content, selected in ((layers, ["a"]), (layers[0], ["a"]), (layers[1], [])):
        path = tmp_path / "layers.json"
        path.write_text(json.dumps(content))
        report = tactics.read([str(path)])
        assert report.sources[0].kind == "layer-info"
        assert report.builds[0].selected == selected


def test_times_alone_and_a_profile_alone_say_what_is_missing(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(json.dumps([{"latencyMs": 1.0, "computeMs": 0.5}]))
    with pytest.raises(InputError, match="these times are of no build"):
        tactics.read([str(path)])
    path.write_text(json.dumps([{"count": 1}, {"name": "a", "timeMs": 1.0, "averageMs": 1.0}]))
    assert "give the build's log" in tactics.read([str(path)]).builds[0].hint


def wrapped(width, *lines):
    return [line[i : i + width] for line in lines for i in range(0, len(line), width)]


LONG = [f"stage{i}/block/left/Conv + stage{i}/block/left/add + PWN(stage{i}/block/left/relu)" for i in range(9)]
LONG_SUMMARY = [
    f"{I}(Sparsity) Found {len(LONG)} layer(s) eligible to use sparse tactics: {', '.join(LONG)}",
    f"{I}(Sparsity) Chose 2 layer(s) using sparse tactics:, {LONG[1]}, {LONG[4]}",
    f"{I}Total Weights Memory: 100 bytes",
]


@pytest.mark.parametrize("width", range(60, 161, 9))
@pytest.mark.parametrize("before", ["> ", "> > "])
def test_wrapped_lines_that_were_quoted_give_the_whole_names(tmp_path, width, before):
    build = build_of(tmp_path, *(before + line for line in wrapped(width, *LONG_SUMMARY)))
    assert (build.eligible, build.selected, build.truncated) == (LONG, [LONG[1], LONG[4]], [])


@pytest.mark.parametrize("width", range(60, 161, 9))
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_wrapped_line_that_nuls_make_longer_does_not_hide_the_width(tmp_path, width, at):
    lines = wrapped(width, *LONG_SUMMARY)
    lines[at] = lines[at][:1] + "\0" + lines[at][1:]
    build = build_of(tmp_path, *lines)
    assert set(build.eligible) <= set(LONG)
    assert set(build.selected) <= {LONG[1], LONG[4]}


@pytest.mark.parametrize("width", range(60, 161, 9))
def test_a_line_that_is_longer_than_all_wrapped_ones_does_not_hide_the_width(tmp_path, width):
    torn = f"{I}Total Activation Memory: 7 bytes" + "x" * width
    build = build_of(tmp_path, *wrapped(width, *LONG_SUMMARY, *LONG_SUMMARY[:2]), torn)
    assert (build.eligible, build.selected) == (LONG, [LONG[1], LONG[4]])


def test_bold_marks_around_a_wrapped_line_are_not_part_of_its_width(tmp_path):
    lines = wrapped(100, *LONG_SUMMARY)
    build = build_of(tmp_path, *(f"**{line}**" if "Sparsity" in line else line for line in lines))
    assert (build.eligible, build.selected) == (LONG, [LONG[1], LONG[4]])


def test_an_arrow_that_was_wrapped_is_no_quotation(tmp_path):
    """Its second half begins a line with `> `."""
    lines = [
        *begin("a")[:1],
        V + "*************** Autotuning format combination: Half(1) -",
        "> Half(1) ***************",
        I + FOUND,
        I + CHOSE,
    ]
    assert build_of(tmp_path, *lines).eligible == ["a/Conv", "b/Conv"]


@pytest.mark.parametrize("piece", ["a_", "a-", "a.", "a+", "a-1", "a ", "1: [", "> ", "[m", "2026-02-03 04:05:06 a - "])
@pytest.mark.parametrize("before", ["[", "", "1: [a", "2026-02-03 04:05:06 "])
def test_no_text_is_slow_to_read_as_a_prefix(piece, before):
    text = before + piece * 2000 + "!"
    start = time.process_time()
    head(text)
    assert time.process_time() - start < 0.5


def test_marks_within_one_quoted_line_stay(tmp_path):
    build = build_of(tmp_path, "notes", "> a > b > c", I + FOUND.replace("a/Conv", "a > c/Conv"), I + CHOSE)
    assert build.eligible == ["a > c/Conv", "b/Conv"]


def test_what_a_build_without_its_end_chose_satisfies_no_requirement(tmp_path):
    chosen = f"{V}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {B}"
    lines = [*begin("b/Conv"), timed(DENSE, A, 0.5), timed(SPARSE, B, 0.1), chosen, *begin("c")]
    cut = read(tmp_path, *lines)
    assert [failure.selected for failure in unmet(cut, ["b/Conv"])] == [Rung.UNKNOWN]
    without_summary = read(tmp_path, *lines, OWN + "Engine built in 1 sec.")
    assert [failure.selected for failure in unmet(without_summary, ["b/Conv"])] == [Rung.UNKNOWN]
    assert unmet(read(tmp_path, *lines, I + FOUND, I + CHOSE), ["b/Conv"]) == []
