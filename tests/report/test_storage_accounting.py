"""Storage accounting counts what real layouts take."""

from __future__ import annotations

import doctest
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.errors import InputError
from pipeline.graph import storage
from pipeline.records import estimate
from pipeline.records.check import CheckedLayer
from pipeline.report import table, words
from pipeline.verdict import diff, layer_times, matching


@pytest.mark.parametrize("module", [storage, words, table, layer_times, matching, diff, estimate], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_hold(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@given(
    rows=st.integers(1, 20),
    cols=st.integers(1, 20),
    share=st.floats(0, 1),
    dtype=st.sampled_from(["float16", "float32", "int8"]),
    seed=st.integers(0, 99),
)
def test_sparse_layouts_take_what_their_arrays_take(rows, cols, share, dtype, seed):
    dense = (np.random.default_rng(seed).random((rows, cols)) < share).astype(dtype)
    row, col = np.nonzero(dense)
    values = dense[row, col]
    starts = np.searchsorted(row, np.arange(rows + 1)).astype(np.int32)
    assert storage.csr_bytes(rows, len(values), dtype) == values.nbytes + col.astype(np.int32).nbytes + starts.nbytes
    assert storage.coo_bytes(len(values), dtype) == values.nbytes + row.astype(np.int32).nbytes + col.astype(np.int32).nbytes
    assert storage.dense_bytes(dense.size, dtype) == dense.nbytes


@given(groups=st.integers(1, 50).map(lambda n: n * 8), dtype=st.sampled_from(["float16", "int8", "float32"]))
def test_packed_takes_half_of_the_values_and_two_bits_for_each(groups, dtype):
    dense = np.tile(np.array([1, 0, 2, 0], dtype), groups)
    values = dense[dense != 0]
    bits = np.unpackbits((np.nonzero(dense)[0] % 4).astype(np.uint8)[:, None], axis=1)[:, -2:]
    assert storage.packed_bytes(dense.size, dtype) == values.nbytes + np.packbits(bits).nbytes


def test_an_unknown_type_is_refused_by_name():
    with pytest.raises(InputError, match="'int4'"):
        storage.dense_bytes(4, "int4")


def checked(weight, two_four, shape=(8, 16), dtype="float16", zeros=0.5):
    where = {"node": f"/{weight}", "graph": "", "op": "Gemm", "operand": 1, "axis": 1}
    return CheckedLayer(**where, weight=weight, shape=list(shape), dtype=dtype, two_four=two_four, zero_fraction=zeros)


def test_only_two_four_layers_are_counted_packed_and_shared_weights_once():
    layers = [
        checked("a", True),
        checked("b", False, zeros=0.0),
        checked("a", True),
        checked("c", None, dtype=None),
        checked("d", True, dtype="int4"),
    ]
    sizes = {size.name: size.bytes for size in storage.weight_sizes("sparse", layers)}
    assert sizes == {
        "weights": 2 * 8 * 16 * 2,
        "packed": 8 * 16 * 2 * 9 // 16 + 8 * 16 * 2,
        "csr32": storage.csr_bytes(8, 64, "float16") + storage.csr_bytes(8, 128, "float16"),
        "coo32": storage.coo_bytes(64 + 128, "float16"),
    }


def test_behind_qdq_the_quantised_values_are_what_is_held():
    quantised = replace(checked("a", True, dtype="float32"), quantized="int8")
    sizes = {size.name: size.bytes for size in storage.weight_sizes("sparse", [quantised])}
    assert (sizes["weights"], sizes["packed"]) == (8 * 16, 8 * 16 * 5 // 8)


def test_a_weight_read_along_two_axes_is_packed_only_where_both_are_two_four():
    for order in ([True, False], [False, True]):
        sizes = {size.name: size.bytes for size in storage.weight_sizes("sparse", [checked("a", held) for held in order])}
        assert sizes["packed"] == sizes["weights"]


def test_files_of_an_arm_are_weighed_and_every_size_says_what_it_answers(tmp_path):
    model, plan, state = tmp_path / "m.onnx", tmp_path / "m.plan", tmp_path / "m.safetensors"
    model.write_bytes(bytes(3_000_000))
    plan.write_bytes(b"p" * 11)
    state.write_bytes(b"s" * 7)
    sizes = storage.arm_sizes("sparse", [checked("a", True)], model=[model], plan=plan, state_dict=state, memory={"weights": 5})
    found = {size.name: size.bytes for size in sizes}
    assert (found["file"], found["plan"], found["state_dict"], found["device weights"]) == (3_000_000, 11, 7, 5)
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.write(model, "m")
    assert abs(found["archive"] - (tmp_path / "m.zip").stat().st_size) < 200
    assert all(size.question and size.arm == "sparse" for size in sizes)
