"""Each form of line means what the documentation says; each kind of file joins where it belongs."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import zstandard

from pipeline import codes, tactics
from pipeline.errors import InputError
from pipeline.records.rung import Rung
from pipeline.tactics.fact_forms import FACT_FORMS
from pipeline.tactics.forms import FORMS
from pipeline.tactics.kernels import KERNEL_ROWS, classify
from pipeline.tactics.names import leaves, parts, split_list
from pipeline.tactics.prefixes import head

SPARSE = "sm80_xmma_fprop_sparse_conv_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_stage4_g1_sptensor16x8x32_t1r3s3"
DENSE = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_stage4_g1_tensor16x8x16_t1r3s3"
V = "[02/03/2026-04:05:06] [V] [TRT] "
I = "[02/03/2026-04:05:06] [I] [TRT] "  # noqa: E741
W = "[02/03/2026-04:05:06] [W] [TRT] "
TORCH = "%7 : Tensor = aten::conv(%a, %b) # net.py:14:3"
OWN = "[02/03/2026-04:05:06] [I] "
BANNER = "&&&& RUNNING TensorRT.trtexec [TensorRT v100400] # trtexec --onnx=net.onnx --fp16 --sparsity=enable"


def read(tmp_path, *lines, name="build.log", others=(), **options):
    path = tmp_path / name
    path.write_text("".join(line + "\n" for line in lines))
    return tactics.read([str(path), *map(str, others)], **options)


def build_of(tmp_path, *lines):
    (build,) = read(tmp_path, *lines).builds
    return build


def table(layer, format_, *timed, runner="CaskConvolution[0x80000009]", chose=True):
    """One format combination; a timed tactic is (kernel, id, ms)."""
    best = min(timed, key=lambda row: row[2]) if timed else None
    return [
        f"{V}*************** Autotuning format combination: {format_} ***************",
        f"{V}--------------- Timing Runner: {layer} ({runner})",
        *(f"{V}Tactic Name: {kernel} Tactic: {id_} Time: {ms}" for kernel, id_, ms in timed),
        *([f"{V}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {best[1]}"] if chose and best else []),
    ]


def summary(eligible, selected):
    return [
        f"{I}(Sparsity) Found {len(eligible)} layer(s) eligible to use sparse tactics: {', '.join(eligible)}",
        f"{I}(Sparsity) Chose {len(selected)} layer(s) using sparse tactics:{''.join(f', {name}' for name in selected)}",
    ]


def reasons(build, name):
    (layer,) = [layer for layer in build.layers if layer.name == name]
    return [reason.code for reason in layer.reasons]


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (SPARSE, "sparse"),
        ("sm90_xmma_sparse_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_sptensor_hgmma64x128x32", "sparse"),
        ("ampere_avdt_sparse_conv", "sparse"),
        ("some_spmma_kernel", "sparse"),
        ("gemm_cusparselt", "unknown"),
        ("ampere_nonsparse_conv", "dense"),
        ("sm80_xmma_fprop_non_sparse_conv", "dense"),
        ("sm80_xmma_gemm_not_sptensor16x8x32", "dense"),
        ("canon_sparse_conv", "sparse"),
        *((f"cub_sparse_{what}_kernel", "unknown") for what in ("embedding", "scatter", "gather", "to_dense", "attention")),
        ("sm80_xmma_sparse_gather_gemm_sptensor16x8x32", "sparse"),
        ("spconv_sparse_kernel", "unknown"),
        ("__myl_sparse_thing", "sparse"),
        ("__myl_Fc_0x1", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        (DENSE, "dense"),
        ("volta_scudnn_128x32_relu", "dense"),
        ("ampere_avdt_dense_conv", "dense"),
        ("somethingElse", "unknown"),
    ],
)
def test_the_first_row_of_the_token_table_decides(kernel, says):
    assert classify(kernel) == says


@pytest.mark.parametrize(
    ("text", "names", "rest"),
    [
        ("a, b + PWN(PWN(x), PWN(y)), c", ["a", "b + PWN(PWN(x), PWN(y))", "c"], None),
        (", a || b, (Unnamed Layer* 12) [Convolution]", ["a || b", "(Unnamed Layer* 12) [Convolution]"], None),
        (f" {TORCH}, {{ForeignNode[x.../y]}}", [TORCH, "{ForeignNode[x.../y]}"], None),
        (" a, PWN(b, c", ["a"], "PWN(b, c"),
        (" a, laye...", ["a"], "laye..."),
        ("", [], None),
    ],
)  # fmt: skip
def test_lists_split_at_bracket_depth_zero(text, names, rest):
    split = split_list(text)
    assert (split.names, split.rest) == (names, rest)


def test_parts_and_leaves_of_fused_names():
    assert parts("a || b + c || d") == ["a", "b + c", "d"]
    assert leaves("a || b + PWN(PWN(c), d)") == ["a", "b", "c", "d"]
    assert leaves("{ForeignNode[first...last]} [profile 1]") == ["first", "last"]


@pytest.mark.parametrize(
    ("line", "severity", "process"),
    [
        ("[02/03/2026-04:05:06] [02/03/2026-04:05:06] [W] [TRT] msg", "W", None),
        ("[W] [TRT] msg", "W", None),
        ("1: [container-1] I0516 08:25:52.973930 9187 logging.cc:49] msg", "I", "container-1"),
        ("INFO:torch_tensorrt [TensorRT Conversion Context]:msg", "I", None),
        ("    INFO:some.python.module:msg", "I", None),
        ("[2020-10-15 05:32:39   ERROR] msg", "E", None),
        ("(12:00:01) [X] msg", "V", None),
        ("> > **[02/03/2026-04:05:06] [I] [TRT] msg", "I", None),
        ("[0;93m[I] msg", "I", None),
        ("msg", None, None),
    ],
)
def test_prefixes_are_read_piece_by_piece(line, severity, process):
    found = head(line)
    assert (found.severity, found.process, line[found.end :]) == (severity, process, "msg")


@pytest.mark.parametrize(
    ("digits", "version"), [("8402", "8.4.2"), ("8412", "8.4.12"), ("8602", "8.6.2"), ("100300", "10.3.0"), ("101401", "10.14.1")]
)
def test_versions_in_banners(tmp_path, digits, version):
    assert build_of(tmp_path, f"&&&& RUNNING TensorRT.trtexec [TensorRT v{digits}] [b18] # trtexec --onnx=a").tensorrt == version


def test_a_torn_list_keeps_only_confirmed_names(tmp_path):
    found = f"{I}(Sparsity) Found 3 layer(s) eligible to use sparse tactics: a/Conv, b/Conv, c/Co{W}something"
    build = build_of(tmp_path, found, "nv", f"{I}(Sparsity) Chose 1 layer(s) using sparse tactics:, a/Conv")
    assert build.eligible == ["a/Conv", "b/Conv"]
    assert [cut.text for cut in build.truncated] == ["c/Co"]


def test_a_cut_name_that_begins_another_is_not_taken_for_it(tmp_path):
    path = tmp_path / "cut.log"
    path.write_text(
        f"{I}(Sparsity) Layers eligible for sparse math: conv1, conv10\n"
        f"{I}(Sparsity) TRT inference plan picked sparse implementation for layers: conv1"
    )
    (build,) = tactics.read([str(path)]).builds
    assert build.selected == []
    assert [cut.text for cut in build.truncated] == ["conv1"]


def test_the_same_eligible_set_again_supersedes(tmp_path):
    build = build_of(tmp_path, *summary(["a", "b"], ["a"]), *summary(["b", "a"], ["b"]))
    assert (build.eligible, build.selected, build.disputed) == (["b", "a"], ["b"], [])
    assert build.passes[0].superseded_by == 1


def test_passes_of_several_profiles_never_supersede(tmp_path):
    shapes = [f"{OWN}Set shape of input tensor x for optimization profile {i} to: MIN=1x8 OPT={i + 1}x8 MAX=4x8" for i in (0, 1)]
    build = build_of(tmp_path, BANNER, *shapes, *summary(["a"], ["a"]), *summary(["a"], []))
    assert [item.profile for item in build.passes] == [0, 1]
    assert build.eligible == ["a", "a [profile 1]"]
    assert build.selected == ["a"]
    assert build.profiles[1].inputs["x"].opt == [2, 8]


def test_overlapping_passes_dispute_the_layers_on_which_they_differ(tmp_path):
    build = build_of(tmp_path, *summary(["a", "b"], ["a"]), *summary(["b", "c"], ["b"]))
    assert set(build.eligible) == {"a", "b", "c"}
    assert set(build.disputed) == {"a", "b", "c"}
    assert build.selected == []
    assert {conflict.code for conflict in build.conflicts} == {"passes-disagree"}


def test_the_kernel_in_the_dump_decides_against_the_list(tmp_path):
    dump = (
        f"Name: a, LayerType: CaskConvolution, Inputs: [], TacticName: {DENSE}, TacticValue: 0x0000000000000001, StreamId: 0, "
        "Metadata: [ONNX Layer: n1]\x1e[ONNX Layer: n2]"
    )
    build = build_of(tmp_path, *summary(["a"], ["a"]), f"{V}Layers:", dump)
    (layer,) = build.layers
    assert layer.selected is Rung.NO
    assert layer.onnx_nodes == ["n1", "n2"]
    assert [conflict.code for conflict in build.conflicts] == ["list-and-tactic-disagree"]
    assert "sources-disagree" in reasons(build, "a")


def test_reasons_across_formats_and_precisions(tmp_path):
    half = ("Half(64,1:8,8,1) -> Half(64,1:8,8,1)", (DENSE, "0x00000000000000d1", 0.02), (SPARSE, "0x00000000000000a1", 0.03))
    nchw = ("Half(64,8,8,1) -> Half(64,8,8,1)", (DENSE, "0x00000000000000d2", 0.04))
    int8 = ("Int8(64,1:32,8,1) -> Int8(64,1:32,8,1)", (DENSE, "0x00000000000000d3", 0.01))
    dump = lambda name, id_: f"Layer(CaskConvolution): {name}, Tactic: {id_}, x[Half(1)] -> y[Half(1)]"  # noqa: E731
    build = build_of(
        tmp_path,
        *(line for name in ("faster", "formats", "precision") for combination in (half, nchw, int8) for line in table(name, *combination)),
        f"{I}(Sparsity) Layers eligible for sparse math: faster, formats, precision, again",
        f"{I}(Sparsity) TRT inference plan picked sparse implementation for layers:",
        f"{V}Engine Layer Information:",
        dump("faster", "0x00000000000000d1"),
        dump("formats", "0x00000000000000d2"),
        dump("precision", "0x00000000000000d3"),
    )
    assert reasons(build, "faster") == ["dense-faster"]
    assert reasons(build, "formats") == ["format-or-reformat-cost"]
    assert reasons(build, "precision") == ["other-precision-won"]
    layers = {layer.name: layer for layer in build.layers}
    assert (layers["faster"].best.comparable, layers["formats"].best.comparable) == (True, False)
    assert layers["formats"].best.sparse.format == half[0]
    assert layers["faster"].tactic.name == DENSE


def test_no_sparse_candidate_skipped_tactics_and_caches(tmp_path):
    lines = [
        f"{I}Local timing cache in use. Profiling results in this builder pass will not be stored.",
        f"{V}=============== Computing costs for first",
        *table("first", "Half(1)", (DENSE, "0x00000000000000d1", 0.02), chose=False),
        f"{W}Tactic Device request: 414MB Available: 216MB. Device memory is insufficient to use tactic.",
        f"{W}(UNSUPPORTED_STATE: )Skipping tactic 3 due to insufficient memory on requested size of 434110464 "
        "detected for tactic 0x0000000000000004.",
        f"{V}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x00000000000000d1",
        f"{V}=============== Computing costs for second",
        f"{V}*************** Autotuning format combination: Half(1) ***************",
        *summary(["first", "second"], []),
    ]
    build = build_of(tmp_path, *lines)
    assert build.skipped_tactics == 1
    assert reasons(build, "first") == ["no-sparse-candidate", "tactics-skipped"]
    assert reasons(build, "second") == ["repeat-of"]
    second = build.layers[1]
    assert (second.cache, second.reasons[0].text, second.timed) == ("repeat", "repeat of first", Rung.UNKNOWN)
    loaded = build_of(tmp_path, f"{I}Loaded 4711 bytes of timing cache from cache.bin", *lines[1:])
    assert reasons(loaded, "second") == ["timed-from-cache"]


def test_tactics_without_names_are_unknown(tmp_path):
    build = build_of(
        tmp_path,
        "[TensorRT] VERBOSE: *************** Autotuning format combination: Half(1) -> Half(1) ***************",
        "[TensorRT] VERBOSE: --------------- Timing Runner: c (CaskConvolution)",
        "[TensorRT] VERBOSE: Tactic: -9147980667639709536 Time: 0.008192",
        "[TensorRT] VERBOSE: Fastest Tactic: -9147980667639709536 Time: 0.008192",
        "[TensorRT] VERBOSE: >>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: -9147980667639709536",
        "[TensorRT] INFO: (Sparsity) Layers eligible for sparse math: c",
        "[TensorRT] VERBOSE: Engine generation completed in 31.2 seconds.",
        "[TensorRT] VERBOSE: Layer(CaskConvolution): c, Tactic: -9147980667639709536, x[Half(1)] -> y[Half(1)]",
    )
    (layer,) = build.layers
    assert layer.tactic.id == "-9147980667639709536"
    assert (layer.tactic.kind, layer.selected, layer.tuned_ms) == ("unknown", Rung.UNKNOWN, 0.008192)
    assert "names-unknown" in reasons(build, "c")


def test_regions_and_fp32_only_builds(tmp_path):
    build = build_of(
        tmp_path,
        "&&&& RUNNING TensorRT.trtexec [TensorRT v8402] # trtexec --onnx=a --sparsity=enable",
        f"{OWN}Precision: FP32",
        f"{I}---------- Layers Running on DLA ----------",
        f"{I}[DlaLayer] {{ForeignNode[a...b]}}",
        f"{I}---------- Layers Running on GPU ----------",
        f"{I}[GpuLayer] CONVOLUTION: c",
        f"{I}(Sparsity) Layers eligible for sparse math:",
        f"{I}(Sparsity) TRT inference plan picked sparse implementation for layers:",
        f"{V}Engine Layer Information:",
        "Layer(DLA): {ForeignNode[a...b]}, Tactic: 0x0000000000000003, x[Half(1)] -> y[Half(1)]",
        "Layer(Myelin): {ForeignNode[c...d]}, Tactic: 0x0000000000000000, x[Half(1)] -> y[Half(1)]",
        "Layer(PluginV2): p, Tactic: 0x0000000000000000, x[Half(1)] -> y[Half(1)]",
    )
    assert [layer.region for layer in build.layers] == ["dla", "myelin", "plugin"]
    assert [reasons(build, layer.name)[0] for layer in build.layers] == ["dla", "myelin-region", "plugin"]
    assert "fp32-only-build" in reasons(build, "p")


def test_a_calibration_engine_is_kept_apart(tmp_path):
    build = build_of(
        tmp_path,
        *table("a", "Float(1)", (DENSE, "0x00000000000000c1", 0.5)),
        f"{I}Engine generation completed in 3.2 seconds.",
        f"{I}Starting Calibration.",
        f"{I}  Calibrated batch 0 in 0.426203 seconds.",
        f"{I}Calibration completed in 12.3 seconds.",
        *table("a", "Half(1)", (DENSE, "0x00000000000000d1", 0.2)),
        *summary(["a"], []),
    )
    assert build.calibration_tactics == 1
    assert build.layers[0].candidates.dense == 1
    assert build.layers[0].best.dense.ms == 0.2


def test_facts_of_machine_options_and_times(tmp_path):
    build = build_of(
        tmp_path,
        BANNER,
        f"{OWN}Precision: FP32+FP16",
        f"{OWN}avgTiming: 8",
        f"{OWN}timingCacheMode: local",
        f"{OWN}Builder optimization level: 3",
        f"{OWN}Selected Device: NVIDIA A10",
        f"{OWN}Compute Capability: 8.6",
        f"{OWN}Sparsity: Enabled",
        f"{I}[MS] Number of aux streams is 2",
        f"{I}Total Scratch Memory: 4608",
        f"{OWN}Engine built in 31.4 sec.",
        f"{OWN}Input binding for x with dimensions 8x3x224x224 is created.",
        f"{OWN}Throughput: 512.5 qps",
        f"{OWN}GPU Compute Time: min = 1.5 ms, max = 2 ms, mean = 1.75 ms, median = 1.7 ms, "
        "percentile(90%) = 1.8 ms, percentile(99%) = 1.9 ms",
        "[02/03/2026-04:05:06] [W] * Throughput may be bound by Enqueue Time rather than GPU Compute and the GPU may be under-utilized.",
        "[02/03/2026-04:05:06] [W] * GPU compute time is unstable, with coefficient of variance = 9.2%.",
        "&&&& PASSED TensorRT.trtexec [TensorRT v100400] # trtexec",
    )
    assert (build.tensorrt, build.sparsity, build.result, build.precision) == ("10.4.0", "enabled", "passed", ["FP32", "FP16"])
    assert build.machine == {"gpu": "NVIDIA A10", "compute_capability": "8.6"}
    assert build.builder == {"avg_timing": "8", "optimization_level": "3", "aux_streams": "2"}
    assert build.timing_cache == {"mode": "local"}
    assert build.memory == {"scratch": "4608"}
    assert build.timed_shapes == {"x": [8, 3, 224, 224]}
    assert build.performance["throughput_qps"] == 512.5
    assert build.performance["gpu_compute_ms.p99"] == 1.9
    assert [finding.code for finding in build.findings] == ["enqueue-bound", "unstable"]
    assert [finding.line for finding in build.findings] == [15, 16]


def test_weights_that_fp16_cannot_hold_are_found(tmp_path):
    build = build_of(
        tmp_path,
        BANNER,
        f"{W}TensorRT encountered issues when converting weights between types and that could affect accuracy.",
        f"{W} - 3 weights are affected by this issue: Detected subnormal FP16 values.",
        f"{W}   List of affected weights: a.weight, b + (Unnamed Layer* 281) [Shuffle]",
        f"{W}Weights [name=c.weight] had the following issues when converted to FP16:",
        f"{W} - Values less than smallest positive FP16 Subnormal value detected. Converting to FP16 minimum subnormalized value.",
    )
    assert [(finding.code, finding.names) for finding in build.findings] == [
        ("fp16-vanish", ["a.weight", "b + (Unnamed Layer* 281) [Shuffle]"]),
        ("fp16-vanish", ["c.weight"]),
    ]


def deepstream(uid, text):
    return f"0:00:01.5 9 0x5 INFO nvinfer gstnvinfer.cpp:682:<gie> NvDsInferContext[UID {uid}]: Info from {text} [UID = {uid}]"


@pytest.mark.parametrize(
    ("between", "builds"),
    [
        (deepstream(1, "buildModel(): another message"), [(["a", "b"], ["b"])]),
        (deepstream(2, "buildModel(): Trying to create engine from model files"), [(["a"], []), (["b"], ["b"])]),
        (deepstream(1, "deserialize failed, try rebuild"), [(["a"], []), (["b"], ["b"])]),
    ],
)
def test_another_uid_or_a_rebuild_is_another_engine(tmp_path, between, builds):
    old = lambda text: f"INFO: [TRT]: (Sparsity) {text}"  # noqa: E731
    picked = "TRT inference plan picked sparse implementation for layers:"
    report = read(
        tmp_path,
        deepstream(1, "buildModel(): Trying to create engine from model files"),
        old("Layers eligible for sparse math: a"),
        old(picked),
        between,
        old("Layers eligible for sparse math: b"),
        old(f"{picked} b"),
    )
    assert [(build.eligible, build.selected) for build in report.builds] == builds


@pytest.mark.parametrize("ahead", [1, 7, 60])
def test_warnings_of_stderr_out_of_order_change_no_list(tmp_path, ahead):
    """Stderr is not buffered: its lines come earlier than what stdout says before them."""
    loud = f"{W}Tactic Device request: 414MB Available: 216MB. Device memory is insufficient to use tactic."
    odd = f"{W}Some tactics do not have sufficient workspace memory to run. Increasing workspace size may help."
    lines = [
        BANNER,
        *table("a", "Half(1)", (SPARSE, "0x00000000000000a1", 0.02), (DENSE, "0x00000000000000d1", 0.03)),
        *table("b", "Half(1)", (SPARSE, "0x00000000000000a1", 0.03), (DENSE, "0x00000000000000d1", 0.02)),
        loud,
        *summary(["a", "b"], ["a"]),
        odd,
        f"{OWN}Engine built in 31.4 sec.",
        "&&&& PASSED TensorRT.trtexec [TensorRT v100400] # trtexec",
    ]
    ordered = build_of(tmp_path, *lines)
    for text in (loud, odd):
        at = lines.index(text)
        lines.insert(max(0, at - ahead), lines.pop(at))
    merged = build_of(tmp_path, *lines)
    assert (
        (merged.eligible, merged.selected, merged.disputed)
        == (ordered.eligible, ordered.selected, ordered.disputed)
        == (["a", "b"], ["a"], [])
    )
    assert [layer.candidates for layer in merged.layers] == [layer.candidates for layer in ordered.layers]
    assert [layer.best for layer in merged.layers] == [layer.best for layer in ordered.layers]
    assert merged.skipped_tactics == 1
    assert [finding.code for finding in merged.findings] == ["workspace-short"]


def test_trace_lines_show_how_the_times_drift(tmp_path):
    build = build_of(
        tmp_path,
        BANNER,
        f"{OWN}Average on 10 runs - GPU latency: 1.8 ms - Host latency: 1.9 ms (enqueue 0.002 ms)",
        f"{OWN}Average on 10 runs - GPU latency: 2.5 ms - Host latency: 2.6 ms (end to end 3.1 ms, enqueue 0.002 ms)",
        f"{OWN}Average on 10 runs - GPU latency: 2.25 ms - Host latency: 2.5 ms (enqueue 0.002 ms)",
    )
    gpu = {key.partition(".")[2]: value for key, value in build.performance.items() if key.startswith("trace_gpu_ms.")}
    assert gpu == {"first": 1.8, "last": 2.25, "min": 1.8, "max": 2.5}
    assert build.performance["trace_host_ms.max"] == 2.6


def test_the_summary_of_trtexec_7_is_read_by_its_headings(tmp_path):
    build = build_of(
        tmp_path,
        BANNER.replace("v100400", "v7202"),
        f"{OWN}Host Latency",
        f"{OWN}min: 0.65 ms (end to end 0.7 ms)",
        f"{OWN}percentile: 1.65 ms at 99% (end to end 1.7 ms at 99%)",
        f"{OWN}GPU Compute",
        f"{OWN}min: 0.5 ms",
        f"{OWN}median: 0.55 ms",
        f"{OWN}percentile: 1.5 ms at 99%",
    )
    assert build.performance == {
        "latency_ms.min": 0.65,
        "latency_ms.p99": 1.65,
        "gpu_compute_ms.min": 0.5,
        "gpu_compute_ms.median": 0.55,
        "gpu_compute_ms.p99": 1.5,
    }


def test_the_old_list_of_dla_groups_is_read(tmp_path):
    build = build_of(
        tmp_path,
        f"{I}--------------- Layers running on DLA: ",
        f"{I}{{a,b}}, {{c,d}}, ",
        f"{I}--------------- Layers running on GPU: ",
        f"{I}{{e}}, ",
        f"{I}(Sparsity) Layers eligible for sparse math: c, e",
        f"{I}(Sparsity) TRT inference plan picked sparse implementation for layers:",
        f"{V}Engine Layer Information:",
        "Layer(Convolution): {a,b}, Tactic: 0x0000000000000003, x[Half(1)] -> y[Half(1)]",
    )
    assert {layer.name: layer.region for layer in build.layers} == {"{a,b}": "dla", "c": "dla", "e": None}


def test_what_asp_pruned_and_skipped_is_found(tmp_path):
    build = build_of(
        tmp_path,
        "[ASP] Enabled 50.00% sparsity for enc.fc::weight of size=torch.Size([768, 768]) and type=torch.float32 with magnitude",
        "[ASP] Auto skipping pruning dec::weight of size=torch.Size([10, 768]) and type=torch.float32 for sparsity",
        "[ASP] Enabled 50.00% sparsity for enc.out::weight of size=torch.Size([768, 768]) and type=torch.float32 with magnitude",
        f"{I}(Sparsity) Found 0 layer(s) eligible to use sparse tactics: ",
    )
    assert [(finding.code, finding.names, finding.line) for finding in build.findings] == [
        ("asp-pruned", ["enc.fc::weight", "enc.out::weight"], 1),
        ("asp-skipped", ["dec::weight"], 2),
    ]


def test_a_run_that_loads_a_plan_is_no_build(tmp_path):
    report = read(
        tmp_path,
        "&&&& RUNNING TensorRT.trtexec [TensorRT v100400] # trtexec --loadEngine=net.plan",
        f"{OWN}Sparsity: Disabled",
        f"{W}Using an engine plan file across different models of devices is not recommended and is likely to affect performance.",
        f"{OWN}Engine loaded in 0.02 sec.",
        "&&&& PASSED TensorRT.trtexec [TensorRT v100400] # trtexec --loadEngine=net.plan",
    )
    assert report.builds == []
    assert report.runs[0].findings[0].code == "plan-of-another-gpu"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([BANNER, f"{OWN}Sparsity: Enabled", f"{OWN}Engine built in 1.0 sec."], "hides TensorRT's INFO"),
        ([BANNER.replace(" --sparsity=enable", ""), f"{OWN}Sparsity: Disabled", f"{OWN}Engine built in 1.0 sec."], "sparsity was off"),
        (["[TensorRT] INFO: Detected 1 inputs.", "[TensorRT] INFO: Engine generation completed in 3 seconds."], "none about sparsity"),
    ],
)  # fmt: skip
def test_a_silent_log_says_what_would_tell_more(tmp_path, lines, words):
    assert words in build_of(tmp_path, *lines).hint


def test_layer_info_profile_and_times_join_their_build(tmp_path):
    info, profile, times = tmp_path / "layers.json", tmp_path / "profile.json", tmp_path / "times.json"
    info.write_text(
        json.dumps(
            {
                "Layers": [{"Name": "a", "LayerType": "CaskConvolution", "TacticName": SPARSE, "TacticValue": "0x00000000000000A1"}],
                "Bindings": [],
            }
        )
    )
    profile.write_text(
        json.dumps(
            [
                {"count": 10},
                {"name": "a", "timeMs": 4.0, "averageMs": 0.4, "medianMs": 0.39, "percentage": 100},
                {"name": "x to nvm", "averageMs": 1},
            ]
        )
    )
    times.write_text(json.dumps([{"latencyMs": 1.0, "computeMs": 0.8}, {"latencyMs": 3.0, "computeMs": 1.2}]))
    report = read(tmp_path, BANNER, *summary(["a", "b"], ["a"]), others=(times, profile, info))
    (build,) = report.builds
    assert [source.kind for source in report.sources] == ["log", "times", "profile", "layer-info"]
    assert build.sources == [0, 1, 2, 3]
    layer = next(layer for layer in build.layers if layer.name == "a")
    assert (layer.tactic.how, layer.tactic.id, layer.profile_ms) == ("layer-info", "0x00000000000000a1", 0.4)
    assert build.performance["gpu_compute_ms.median"] == 1.0
    assert "x to nvm" not in {layer.name for layer in build.layers}


def test_a_tie_between_builds_asks_which(tmp_path):
    info = tmp_path / "layers.json"
    info.write_text(json.dumps({"Layers": [{"Name": "a", "TacticName": SPARSE}]}))
    lines = [BANNER, *summary(["a"], []), BANNER, *summary(["a"], [])]
    with pytest.raises(InputError, match="fit equally well"):
        read(tmp_path, *lines, others=(info,))
    report = read(tmp_path, *lines, others=(info,), build=1)
    assert [build.selected for build in report.builds] == [[], ["a"]]


def test_dumped_profiles_are_read_from_the_right(tmp_path):
    build = build_of(
        tmp_path,
        BANNER,
        *summary(["conv 1 + relu"], ["conv 1 + relu"]),
        f"{OWN}=== Profile (1050 iterations ) ===",
        f"{OWN}            Layer   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %",
        f"{OWN}    conv 1 + relu      105.00           0.1000             0.0990     99.0",
        f"{OWN}            Total      105.00           0.1000             0.0990    100.0",
    )
    assert build.layers[0].profile_ms == 0.1


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_archives_and_folders_are_read(tmp_path, suffix):
    text = "".join(line + "\n" for line in [BANNER, *summary(["a"], ["a"])]).encode()
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / f"build.log{suffix}").write_bytes(gzip.compress(text) if suffix == ".gz" else zstandard.compress(text))
    (folder / "notes.txt").write_text("nothing here\n")
    (folder / "weights.bin").write_bytes(bytes(range(256)) * 50)
    report = tactics.read([str(folder)])
    assert [build.selected for build in report.builds] == [["a"]]
    assert len(report.sources) == 1


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"x" * 5000)[:-30], zstandard.compress(b"x" * 5000)[:-4] + b"zzzzzzzz", b"\x1f\x8b" + b"0" * 50],
    ids=["cut gzip", "torn zstd", "no gzip at all"],
)
def test_damaged_archives_are_the_inputs_fault(tmp_path, data):
    path = tmp_path / "build.log.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"build\.log\.gz"):
        tactics.read([str(path)])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"Layers": [', "not readable JSON"),
        ('{"a": 1}', "neither layer info"),
        ('{"schema": "sparsegate.tactics/1"}', "report of sparsegate itself"),
        ("", "no TensorRT build"),
    ],
)  # fmt: skip
def test_other_files_are_refused_by_name(tmp_path, content, words):
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        tactics.read([str(path)])
    assert "file.json" in str(caught.value)


def test_a_plan_needs_tensorrt(tmp_path):
    path = tmp_path / "net.plan"
    path.write_bytes(b"ftrt" + bytes(100))
    with pytest.raises(InputError, match="needs the package 'tensorrt'"):
        tactics.read([str(path)])


def test_onnx_nodes_by_the_parts_of_fused_names(tmp_path):
    report = read(tmp_path, *summary(["a/Conv || b/Conv + PWN(b/act)"], []), onnx_nodes=["a/Conv", "b/Conv", "b/act", "other"])
    assert report.builds[0].layers[0].onnx_nodes == ["a/Conv", "b/Conv", "b/act"]


def test_every_code_that_a_report_names_is_registered_with_its_source():
    from pipeline.tactics.reasons import RULES

    assert {code for code, _ in RULES} == {code.id for code in codes.REASONS}
    assert {form.into for form in FACT_FORMS if form.kind in ("finding", "asp")} <= {code.id for code in codes.FINDINGS}
    for code in (*codes.REASONS, *codes.CONFLICTS, *codes.FINDINGS):
        assert code.text
        assert code.versions
        assert code.source or code.level in (codes.Level.OWN, codes.Level.INFERRED)
    source = "".join(path.read_text() for path in Path(tactics.__file__).parent.glob("*.py"))
    emitted = set(re.findall(r'"([a-z]+(?:-[a-z]+)*-(?:disagree|not-eligible|mixed))"', source))
    assert emitted - {"sources-disagree"} == {code.id for code in codes.CONFLICTS}
    assert len({form.name for form in FORMS}) == len(FORMS)
    assert KERNEL_ROWS[0].says == "unknown"


def test_a_list_that_is_shorter_than_its_number_ends_in_no_name(tmp_path):
    log = tmp_path / "cut.log"
    log.write_text(
        "[I] [TRT] (Sparsity) Found 3 layer(s) eligible to use sparse tactics: block/conv1, act\n"
        "[I] [TRT] (Sparsity) Chose 2 layer(s) using sparse tactics:, block/conv1, block/conv2\n"
    )
    (build,) = tactics.read([str(log)]).builds
    assert ({layer.name for layer in build.layers}, [cut.text for cut in build.truncated]) == ({"block/conv1", "block/conv2"}, ["act"])
    assert (build.selected, build.conflicts) == (["block/conv1", "block/conv2"], [])


def test_a_chosen_layer_that_was_not_found_eligible_is_disputed_and_not_selected(tmp_path):
    """Where nothing else tells that the lists end in the middle of names."""
    log = tmp_path / "cut.log"
    log.write_text(
        "[I] [TRT] (Sparsity) Found 2 layer(s) eligible to use sparse tactics: block/conv1, act\n"
        "[I] [TRT] (Sparsity) Chose 2 layer(s) using sparse tactics:, block/conv1, block/conv2\n"
    )
    (build,) = tactics.read([str(log)]).builds
    assert "block/conv2" not in build.selected
    assert "block/conv2" in build.disputed
    assert "chosen-but-not-eligible" in [conflict.code for conflict in build.conflicts]


def test_a_sparse_choice_for_a_layer_that_the_complete_list_omits_is_disputed(tmp_path):
    log = tmp_path / "odd.log"
    kernel = "sm80_xmma_fprop_sparse_conv_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_sptensor16x8x32_t1r3s3"
    log.write_text(
        "[V] [TRT] =============== Computing costs for conv1\n"
        "[V] [TRT] *************** Autotuning format combination: Half(1,2,3,4) -> Half(1,2,3,4) ***************\n"
        "[V] [TRT] --------------- Timing Runner: conv1 (CaskConvolution[0x80000009])\n"
        f"[V] [TRT] Tactic Name: {kernel} Tactic: 0x00000000000000aa Time: 0.01\n"
        "[V] [TRT] conv1 (CaskConvolution[0x80000009]) profiling completed in 0.1 seconds. "
        "Fastest Tactic: 0x00000000000000aa Time: 0.01\n"
        "[V] [TRT] >>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x00000000000000aa\n"
        "[I] [TRT] (Sparsity) Found 1 layer(s) eligible to use sparse tactics: other\n"
        "[I] [TRT] (Sparsity) Chose 0 layer(s) using sparse tactics:\n"
    )
    (build,) = tactics.read([str(log)]).builds
    assert build.selected == []
    assert "conv1" in build.disputed


@pytest.mark.parametrize(("flag", "mode"), [("enable", "enabled"), ("force", "forced"), ("disable", "disabled")])
def test_the_banners_command_tells_the_mode_where_trtexecs_own_line_is_gone(tmp_path, flag, mode):
    log = tmp_path / "b.log"
    command = f"# trtexec --onnx=n.onnx --sparsity={flag}"
    log.write_text(
        f"&&&& RUNNING TensorRT.trtexec [TensorRT v100300] {command}\n&&&& PASSED TensorRT.trtexec [TensorRT v100300] {command}\n"
    )
    (build,) = tactics.read([str(log)]).builds
    assert build.sparsity == mode
