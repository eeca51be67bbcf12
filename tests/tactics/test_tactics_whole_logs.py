"""Whole logs as people have them: neither what other programs print between the messages nor their layers' names take anything away."""

from __future__ import annotations

import pytest

from pipeline import tactics

PREFIX = "[03/04/2026-10:00:00] [TRT] [I] "
VERBOSE = "[03/04/2026-10:00:00] [TRT] [V] "
LONG = PREFIX + "[MemUsageChange] Init CUDA: CPU +14, GPU +0, now: CPU 30, GPU 500 (MiB) " + "and more " * 30
SHORT = PREFIX + "Detected 1 inputs and 1 output network tensors."
DENSE = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize64x32x64_stage5_tensor16x8x16_t1r3s3"
PROGRESS = "\r 50%|█████     | 5/10 [00:01<00:01]\r 60%|██████    | 6/10 [00:01<00:01]"
PRINTED = (
    "Done",
    "Engine saved",
    "ENGINE OK",
    "Epoch 1/10",
    "loss=0.3",
    "{'loss': 0.3}",
    "torch.Size([1, 3, 224, 224])",
    "model.onnx -> model.engine",
    "/models/model.engine",
    "----------",
    "$ ls -la",
    "me@host:~$ ls",
    "++ date",
    "* serializing",
    "real\t0m3.2s",
    "[info] done",
    "Building: 100%|██████████| 10/10 [00:01<00:00]",
    PROGRESS,
    "/usr/lib/net.py:12: UserWarning: this is deprecated and will be removed...\n  warnings.warn(",
)


def read(folder, *lines):
    path = folder / "build.log"
    path.write_bytes(("\n".join(lines) + "\n").encode())
    (build,) = tactics.read([str(path)]).builds
    return build


def found(*names):
    return f"{PREFIX}(Sparsity) Found {len(names)} layer(s) eligible to use sparse tactics: {', '.join(names)}"


def chose(*names):
    return f"{PREFIX}(Sparsity) Chose {len(names)} layer(s) using sparse tactics:{''.join(f', {name}' for name in names)}"


def costs(layer, *, between=()):
    return [
        f"{VERBOSE}=============== Computing costs for {layer}",
        f"{VERBOSE}*************** Autotuning format combination: Half(8,4:2,2,1) -> Half(8,4:2,2,1) ***************",
        f"{VERBOSE}--------------- Timing Runner: {layer} (CaskConvolution[0x80000009])",
        f"{VERBOSE}Tactic Name: {DENSE} Tactic: 0x0a1b2c3d4e5f6071 Time: 0.04",
        *between,
        f"{VERBOSE}{layer} (CaskConvolution[0x80000009]) profiling completed in 0.4 seconds. Fastest Tactic: 0x0a1b2c3d4e5f6071 Time: 0.04",
        f"{VERBOSE}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: 0x0a1b2c3d4e5f6071",
    ]


@pytest.mark.parametrize("printed", PRINTED)
@pytest.mark.parametrize("first", [LONG, SHORT])
def test_what_a_program_prints_behind_a_list_takes_no_name_from_it(tmp_path, printed, first):
    build = read(tmp_path, first, found("a/Conv", "b/Conv + b/Relu"), printed, chose("a/Conv"), printed, PREFIX + "Done.")
    assert (build.eligible, build.selected, build.truncated) == (["a/Conv", "b/Conv + b/Relu"], ["a/Conv"], [])


def test_nothing_is_chosen_where_the_number_is_0_whatever_is_printed_next(tmp_path):
    build = read(tmp_path, LONG, found("a/Conv"), chose(), "epoch 1 loss 0.3 ...", PREFIX + "Done.")
    assert [layer.selected for layer in build.layers] == ["no"]
    assert build.truncated == []


def test_a_list_that_was_broken_behind_its_number_goes_on(tmp_path):
    """Seen with TensorRT 10.3: the number is 0, and the list names layers."""
    build = read(tmp_path, LONG, found("a/Conv", "b/Conv"), chose(), ", a/Conv", PREFIX + "Done.")
    assert {layer.name: layer.selected.value for layer in build.layers}["a/Conv"] in ("disputed", "unknown")


def test_the_last_name_of_a_list_may_be_that_of_a_layer_of_two_profiles(tmp_path):
    names = ["a/Conv", "b/Conv"]
    second = [f"{name} [profile 1]" for name in names]
    build = read(tmp_path, SHORT, found(*names), chose("a/Conv"), found(*second), chose(second[0]), PREFIX + "Done.")
    assert (build.eligible, build.truncated) == ([*names, *second], [])


@pytest.mark.parametrize("names", [["conv10", "conv2", "conv1"], ["layer1.0.conv", "layer1.0"], ["a/Conv + a/Relu", "a/Conv_1", "a/Conv"]])
def test_the_last_name_of_a_list_may_begin_another_one_of_the_same_list(tmp_path, names):
    build = read(tmp_path, SHORT, found(*names), chose(*names[:-1]), PREFIX + "Done.")
    assert (build.eligible, build.truncated) == (names, [])


@pytest.mark.parametrize("printed", [PROGRESS, PRINTED[-1], "loading the model..."])
def test_what_a_program_prints_between_tactics_hides_none_of_them(tmp_path, printed):
    lines = [*costs("a/Conv"), *costs("b/Conv", between=[printed]), *costs("c/Conv")]
    build = read(tmp_path, *lines, found(), chose(), PREFIX + "Engine generation completed in 3.2 seconds.")
    assert {layer.name: layer.timed for layer in build.layers} == {"a/Conv": "no", "b/Conv": "no", "c/Conv": "no"}


def test_a_log_may_begin_with_the_table_of_a_reformat(tmp_path):
    reformat = [
        f"{VERBOSE}=============== Computing reformatting costs",
        f"{VERBOSE}*************** Autotuning Reformat: Float(8,4,2,1) -> Half(8,4,2,1) ***************",
        f"{VERBOSE}--------------- Timing Runner: Optimizer Reformat(x -> <out>) (Reformat[0x80000006])",
        f"{VERBOSE}Tactic: 0x00000000000003e8 Time: 0.01",
        f"{VERBOSE}Optimizer Reformat(x -> <out>) (Reformat[0x80000006]) profiling completed in 0.003 seconds. "
        "Fastest Tactic: 0x00000000000003e8 Time: 0.01",
    ]
    build = read(tmp_path, *reformat, *costs("a/Conv"), found(), chose(), PREFIX + "Engine generation completed in 3.2 seconds.")
    assert [layer.timed for layer in build.layers] == ["no"]


def test_a_log_that_tells_no_more_of_a_build_than_its_timing_cache_is_one(tmp_path):
    """Without sparsity TensorRT 8 tells little more at INFO."""
    build = read(tmp_path, PREFIX + "Local timing cache in use. Profiling results in this builder pass will not be stored.", SHORT)
    assert (build.layers, build.timing_cache["mode"]) == ([], "local")
    assert build.hint


@pytest.mark.parametrize("prefix", ["2026-03-04T10:00:00.123456789Z stdout F ", "2026-03-04T10:00:00.1+01:00 stderr F "])
def test_what_a_container_runtime_puts_before_each_line_is_no_part_of_it(tmp_path, prefix):
    lines = [*costs("a/Conv"), found("a/Conv", "b/Conv"), chose("b/Conv"), PREFIX + "Engine generation completed in 3.2 seconds."]
    build = read(tmp_path, *(prefix + line for line in lines))
    assert (build.eligible, build.selected, build.truncated) == (["a/Conv", "b/Conv"], ["b/Conv"], [])
    assert [layer.timed.value for layer in build.layers if layer.name == "a/Conv"] == ["no"]
