"""Where a line is missing or cut, what it would have said is not known, and what stands around it proves less."""

from __future__ import annotations

from pipeline import tactics

INFO, VERBOSE = "[TRT] [I] ", "[TRT] [V] "
DENSE = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize64x64x64_stage5_tensor16x8x16_t1r3s3"
SPARSE = "sm80_xmma_fprop_sparse_conv_f16f16_f16f32_f16_nhwckrsc_nhwc_tilesize128x64x64_stage4_sptensor16x8x32_t1r3s3"
A, B = "0x00000000000000aa", "0x00000000000000bb"
COMBINATION = f"{VERBOSE}*************** Autotuning format combination: Half(8,4:2,2,1) -> Half(8,4:2,2,1) ***************"
ELIGIBLE, PICKED = "(Sparsity) Layers eligible for sparse math: ", "(Sparsity) TRT inference plan picked sparse implementation for layers: "


def costs(layer):
    return f"{VERBOSE}=============== Computing costs for {layer}"


def runner(layer):
    return f"{VERBOSE}--------------- Timing Runner: {layer} (CaskConvolution[0x80000009])"


def timed(kernel, id_, ms):
    return f"{VERBOSE}Tactic Name: {kernel} Tactic: {id_} Time: {ms}"


def completed(layer, id_=A):
    return f"{VERBOSE}{layer} (CaskConvolution[0x80000009]) profiling completed in 0.4 seconds. Fastest Tactic: {id_} Time: 0.5"


def chose(id_=A):
    return f"{VERBOSE}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {id_}"


def table(layer):
    return [costs(layer), COMBINATION, runner(layer), timed(DENSE, A, 0.5), completed(layer), chose()]


def read(folder, *lines, end="\n"):
    path = folder / "build.log"
    path.write_text("\n".join(lines) + end)
    (build,) = tactics.read([str(path)]).builds
    return {layer.name: layer for layer in build.layers}


def test_a_list_cut_behind_a_whole_name_denies_no_layer(tmp_path):
    layers = read(tmp_path, *table("a"), *table("b"), *table("c"), f"{INFO}{ELIGIBLE}a, b", end="")
    assert (layers["b"].eligible.value, layers["c"].eligible.value) == ("yes", "unknown")


def test_a_list_that_ends_with_a_comma_denies_no_layer(tmp_path):
    layers = read(tmp_path, *table("a"), *table("c"), f"{INFO}{ELIGIBLE}a,", f"{INFO}{PICKED}")
    assert (layers["a"].eligible.value, layers["c"].eligible.value) == ("yes", "unknown")


def test_a_list_into_which_another_was_torn_denies_no_layer_and_takes_none_of_its_names(tmp_path):
    layers = read(tmp_path, *table("a"), *table("b"), *table("c"), f"{INFO}{ELIGIBLE}a, b{PICKED}c")
    assert {name: layer.eligible.value for name, layer in layers.items()} == {"a": "yes", "b": "yes", "c": "unknown"}
    assert "yes" not in {layer.selected.value for layer in layers.values()}


def test_tactics_that_name_another_layer_than_their_runners_line_are_nobodys(tmp_path):
    named = [f"{VERBOSE}b Set Tactic Name: {SPARSE} Tactic: {B}", f"{VERBOSE}Tactic: {B} Time: 0.1"]
    layers = read(tmp_path, costs(""), COMBINATION, runner("a"), *named, chose(B), *table("c"), f"{INFO}{ELIGIBLE}c", f"{INFO}{PICKED}")
    assert layers["a"].timed.value == "unknown"


def test_a_runners_line_that_is_cut_may_have_held_a_tactic(tmp_path):
    cut = runner("a")[:-10] + timed(SPARSE, B, 0.1)[len(VERBOSE) :]
    layers = read(tmp_path, costs("a"), COMBINATION, cut, timed(DENSE, A, 0.5), completed("a"), chose(), *table("c"), f"{INFO}{ELIGIBLE}a")
    assert layers["a"].timed.value == "unknown"


def test_tactics_behind_no_runners_line_are_not_those_of_the_costs_line(tmp_path):
    layers = read(tmp_path, costs("a"), COMBINATION, timed(SPARSE, B, 0.1), chose(B), *table("c"), f"{INFO}{ELIGIBLE}a")
    assert layers["a"].timed.value == "unknown"


def seven(folder, *lines, tactic):
    """A layer's table in the form of 7.x, which names each tactic in the line before its time, and the engine that runs this tactic."""
    first = f"{VERBOSE}--------------- Timing Runner: a (CaskConvolution)"
    told = [
        f"{VERBOSE}a (scudnn) Set Tactic Name: {line}" if line in (DENSE, SPARSE) else f"{VERBOSE}Tactic: {line} time 0.1" for line in lines
    ]
    dump = [f"{VERBOSE}Engine Layer Information:", f"Layer(Convolution): a, Tactic: {tactic}, x[Half(1,2,3,4)] -> y[Half(1,2,3,4)]"]
    end = f"{VERBOSE}>>>>>>>>>>>>>>> Chose Runner Type: CaskConvolution Tactic: {tactic}"
    return read(folder, costs(""), COMBINATION, first, *told, end, *dump)["a"].tactic.name


def test_a_name_given_by_order_is_that_of_the_next_time_only_where_all_lines_are_there(tmp_path):
    assert seven(tmp_path, DENSE, "1", SPARSE, "2", tactic=2) == SPARSE
    assert seven(tmp_path, DENSE, SPARSE, "2", tactic=2) is None
    assert seven(tmp_path, DENSE, SPARSE, "1", "2", tactic=1) is None
    assert seven(tmp_path, "1", SPARSE, "2", tactic=2) is None


def test_a_choice_that_was_not_timed_tells_that_lines_are_missing(tmp_path):
    lines = [costs("a"), COMBINATION, runner("a"), timed(DENSE, A, 0.5), completed("a"), chose(B)]
    layers = read(tmp_path, *lines, *table("c"), f"{INFO}{ELIGIBLE}a", f"{INFO}{PICKED}")
    assert (layers["a"].timed.value, layers["c"].timed.value) == ("unknown", "no")


def test_a_costs_line_that_is_cut_names_no_layer(tmp_path):
    assert list(read(tmp_path, costs("a/Con"), *table("a/Conv"), f"{INFO}{ELIGIBLE}a/Conv", f"{INFO}{PICKED}")) == ["a/Conv"]


def test_a_dump_line_into_which_another_was_torn_tells_no_tactic(tmp_path):
    summary = [f"{INFO}{ELIGIBLE}a", f"{INFO}{PICKED}"]
    old = f"Layer(Convolution): a, Tactic: {A}, x[Half(1,Layer(Convolution): b, Tactic: {B}, x[Half(1,2)] -> y[Half(1,2)]"
    new = f"Name: a, LayerType: C, Inputs: [ Name: b, LayerType: C, Inputs: [], TacticName: {SPARSE}, TacticValue: {B}, StreamId: 0"
    for line in (old, new):
        assert read(tmp_path, *summary, f"{VERBOSE}Engine Layer Information:", line)["a"].tactic is None


def test_a_dump_right_behind_the_tables_tells_that_lines_between_are_missing(tmp_path):
    dump = [f"{VERBOSE}Engine Layer Information:", f"Layer(Convolution): z, Tactic: {A}, x[Half(1,2)] -> y[Half(1,2)]"]
    layers = read(tmp_path, *table("a"), *table("b"), *dump, f"{INFO}Engine generation completed in 3 seconds.")
    assert (layers["a"].timed.value, layers["b"].timed.value) == ("no", "unknown")


def test_lines_that_somebody_left_out_may_be_of_the_layers_around_them(tmp_path):
    summary = [f"{INFO}{ELIGIBLE}a", f"{INFO}{PICKED}"]
    whole = read(tmp_path, *table("a"), *table("b"), *table("c"), *summary)
    parted = read(tmp_path, *table("a"), *table("b"), "[... 7 lines omitted ...]", *table("c"), *summary)
    assert [layer.timed.value for layer in whole.values()] == ["no", "no", "no"]
    assert [layer.timed.value for layer in parted.values()] == ["no", "unknown", "unknown"]
