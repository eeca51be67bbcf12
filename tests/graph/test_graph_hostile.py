"""Broken, cyclic, huge and malicious files: a clear error or the right answer, never a crash or a hang."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import graph_zoo as zoo
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as h

from pipeline import graph
from pipeline.errors import InputError
from pipeline.records.check import Target

WEIGHT = zoo.two_four(zoo.dense((64, 32), 0), 0, 0).astype(np.float32)


def simple(weight=WEIGHT) -> onnx.ModelProto:
    return zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [zoo.init("w", weight)])


def check(path):
    return graph.check(path, Target())


def test_every_truncation_of_a_file_is_refused_or_read_right(tmp_path):
    data = simple().SerializeToString()
    path = tmp_path / "m.onnx"
    graph_end = len(data) - len(simple().SerializeToString()) + data.index(WEIGHT.tobytes()) + WEIGHT.nbytes
    for length in [*range(40), *range(40, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        try:
            report = check(path)
        except InputError as error:
            assert "m.onnx" in str(error)
        else:  # cut between two whole fields: only what is left can be judged
            assert length >= graph_end or report.layers == []


def refused_or_read(data):
    """In a folder of its own: hypothesis calls a test many times within one `tmp_path`."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "m.onnx"
        path.write_bytes(data)
        try:
            check(path)
        except InputError as error:
            assert "m.onnx" in str(error)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data):
    refused_or_read(data)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_refused_or_read(changes):
    data = bytearray(simple(WEIGHT[:8, :4]).SerializeToString())
    for at, value in changes:
        data[at % len(data)] = value
    refused_or_read(data)


@pytest.mark.parametrize(
    "content", [b"", b"not a model", b"<html>", b"version https://git-lfs.github.com/spec/v1\n", b"\x00" * 64, b"\xff" * 64]
)
def test_files_that_are_no_models(content, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"m\.onnx"):
        check(path)


@pytest.mark.parametrize("head", [b"", simple(WEIGHT[:8, :4]).SerializeToString()], ids=["zeros alone", "zeros behind a model"])
def test_a_file_of_zeros_is_refused_at_its_first_zero(head, tmp_path):
    """Such as a download leaves that set its size beforehand: no protobuf field has the number 0."""
    path = tmp_path / "m.onnx"
    path.write_bytes(head)
    os.truncate(path, 64 << 20)
    with pytest.raises(InputError, match=f"field number 0 at byte {len(head)}"):
        check(path)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        check(tmp_path / "none.onnx")
    with pytest.raises(InputError, match="directory"):
        check(tmp_path)


def external(folder, **entries) -> None:
    model = simple()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = T.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "m.onnx").write_bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "gone.bin"}, "does not exist"),
        ({"location": "../secret.bin"}, "outside the model's folder"),
        ({"location": "sub/../../secret.bin"}, "outside the model's folder"),
        ({"location": "/etc/passwd"}, "no path relative"),
        ({"location": "C:\\secret.bin"}, "no path relative"),
        ({"location": ""}, "no path relative"),
        ({"location": "."}, "does not exist"),
        ({"location": "link.bin"}, "outside the model's folder"),
        ({"location": "short.bin"}, "needs 8192 bytes"),
        ({"location": "whole.bin", "length": "8000"}, "needs 8192 bytes"),
        ({"location": "whole.bin", "offset": "4"}, "needs 8192 bytes"),
        ({"location": "whole.bin", "offset": "4", "length": "8192"}, "which has 8192"),
        ({"location": "whole.bin", "offset": "-4"}, "which has 8192"),
        ({"location": "whole.bin", "offset": "99999999999999999999"}, "which has 8192"),
        ({"location": "whole.bin", "offset": "four"}, "no number"),
    ],
)
def test_external_data_that_cannot_be_read_is_named(entries, words, tmp_path):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(WEIGHT.tobytes())
    (folder / "whole.bin").write_bytes(WEIGHT.tobytes())
    (folder / "short.bin").write_bytes(WEIGHT.tobytes()[:100])
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    external(folder, **entries)
    with pytest.raises(InputError, match=words) as caught:
        check(folder / "m.onnx")
    assert "'w'" in str(caught.value)


def test_external_data_is_read_at_its_offset(tmp_path):
    (tmp_path / "d.bin").write_bytes(b"\xff" * 3 + WEIGHT.tobytes() + b"\xff")
    external(tmp_path, location="d.bin", offset="3", length="8192")
    report = check(tmp_path / "m.onnx")
    assert report.totals.two_four == 1
    assert [(entry.path, entry.size_bytes) for entry in report.model.external] == [("d.bin", 8196)]


def test_a_model_cannot_forge_the_place_of_its_values(tmp_path):
    model = simple()
    for index in range(3):
        model.graph.initializer[0].external_data.add(key="sparsegate.0000000000000000", value=str(index))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert check(tmp_path / "m.onnx").totals.two_four == 1


def test_a_cycle_is_refused(tmp_path):
    nodes = [h.make_node("MatMul", ["b", "w"], ["a"], name="first"), h.make_node("Relu", ["a"], ["b"], name="second")]
    (tmp_path / "m.onnx").write_bytes(zoo.model_of(nodes, [zoo.init("w", WEIGHT)]).SerializeToString())
    with pytest.raises(InputError, match="cycle through node 'first'"):
        check(tmp_path / "m.onnx")


def test_functions_that_call_themselves_are_refused(tmp_path):
    opset = [h.make_opsetid("", zoo.OPSET), h.make_opsetid("local", 1)]
    functions = [
        h.make_function("local", "F", ["a"], ["b"], [h.make_node("G", ["a"], ["b"], domain="local")], opset),
        h.make_function("local", "G", ["a"], ["b"], [h.make_node("F", ["a"], ["b"], domain="local")], opset),
    ]
    model = zoo.model_of([h.make_node("F", ["x"], ["y"], domain="local")], [], functions=functions)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="calls itself"):
        check(tmp_path / "m.onnx")


def test_functions_that_multiply_without_end_are_stopped(tmp_path, monkeypatch):
    from pipeline.graph import trace

    monkeypatch.setattr(trace, "MOST_VISITS", 4_000)
    opset = [h.make_opsetid("", zoo.OPSET), h.make_opsetid("local", 1)]
    functions = []
    for level in range(60):
        callee, domain = ("Relu", "") if level == 0 else (f"F{level - 1}", "local")
        nodes = [h.make_node(callee, ["a"], ["m"], domain=domain), h.make_node(callee, ["m"], ["b"], domain=domain)]
        functions.append(h.make_function("local", f"F{level}", ["a"], ["b"], nodes, opset))
    model = zoo.model_of([h.make_node("F59", ["x"], ["y"], domain="local")], [], functions=functions)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="expands to more than"):
        check(tmp_path / "m.onnx")


@pytest.mark.parametrize("op", ["Relu", "Identity", "Transpose", "Mul", "Reshape"])
def test_ten_thousand_nodes_are_walked_in_seconds(op, tmp_path):
    """A chain on the data (Relu), or on the weight: there the arithmetic must not nest without end."""
    on_data = op == "Relu"
    count = 10_000
    inputs = {"Mul": ["one"], "Reshape": ["shape"]}.get(op, [])
    start = "x" if on_data else "w"
    nodes = [h.make_node(op, [start if at == 0 else f"v{at - 1}", *inputs], [f"v{at}"]) for at in range(count)]
    nodes.append(h.make_node("MatMul", [f"v{count - 1}", "w"] if on_data else ["x", f"v{count - 1}"], ["y"]))
    inits = [zoo.init("w", WEIGHT[:8, :8]), zoo.init("one", np.float32(1)), zoo.init("shape", np.array([8, 8]))]
    (tmp_path / "m.onnx").write_bytes(zoo.model_of(nodes, inits).SerializeToString())
    before = time.process_time()
    report = check(tmp_path / "m.onnx")
    assert time.process_time() - before < 20
    assert (report.totals.layers, report.totals.two_four) == (1, 1)


def test_a_weight_multiplied_with_itself_again_and_again_is_computed_in_time(tmp_path):
    nodes = [h.make_node("Mul", ["w" if at == 0 else f"v{at - 1}"] * 2, [f"v{at}"]) for at in range(200)]
    nodes.append(h.make_node("MatMul", ["x", "v199"], ["y"]))
    ones = np.sign(WEIGHT)
    (tmp_path / "m.onnx").write_bytes(zoo.model_of(nodes, [zoo.init("w", ones)]).SerializeToString())
    assert check(tmp_path / "m.onnx").totals.two_four == 1


@pytest.mark.parametrize(
    "nodes",
    [
        [h.make_node("Expand", ["w", "big"], ["e"])],
        [h.make_node("Tile", ["w", "big"], ["e"])],
        [h.make_node("ConstantOfShape", ["big"], ["e"])],
        [h.make_node("Pad", ["w", "pads"], ["e"])],
        [h.make_node("Expand", ["w", "big"], ["d"]), h.make_node("Softmax", ["d"], ["e"])],
    ],
)
def test_constants_that_would_not_fit_in_memory_are_not_computed(nodes, tmp_path):
    inits = [
        zoo.init("w", np.zeros((1, 4), np.float32)),
        zoo.init("big", np.array([2**20, 2**16])),
        zoo.init("pads", np.array([2**40] * 4)),
    ]
    last = h.make_node("MatMul", ["x", "e"], ["y"])
    if nodes[0].op_type == "Expand":
        inits[1] = zoo.init("big", np.array([2**40, 4]))
    (tmp_path / "m.onnx").write_bytes(zoo.model_of([*nodes, last], inits).SerializeToString())
    before = time.process_time()
    (layer,) = check(tmp_path / "m.onnx").layers
    assert time.process_time() - before < 5
    assert layer.two_four is None


def test_dimensions_that_overflow_are_refused(tmp_path):
    tensor = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[2**62, 2**62], raw_data=b"\0" * 16)
    (tmp_path / "m.onnx").write_bytes(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [tensor]).SerializeToString())
    with pytest.raises(InputError, match="needs"):
        check(tmp_path / "m.onnx")


def test_negative_dimensions_are_refused(tmp_path):
    tensor = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=[-4, -4], raw_data=b"\0" * 64)
    (tmp_path / "m.onnx").write_bytes(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [tensor]).SerializeToString())
    with pytest.raises(InputError, match="negative"):
        check(tmp_path / "m.onnx")


def test_sparse_indices_out_of_range_are_refused(tmp_path):
    sparse = onnx.SparseTensorProto(values=zoo.init("w", np.ones(2, np.float32)), indices=zoo.init("i", np.array([1, 99])), dims=[8, 4])
    (tmp_path / "m.onnx").write_bytes(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [], sparse=[sparse]).SerializeToString())
    with pytest.raises(InputError, match="do not fit"):
        check(tmp_path / "m.onnx")


def test_a_huge_sparse_tensor_is_unknown(tmp_path):
    sparse = onnx.SparseTensorProto(values=zoo.init("w", np.ones(1, np.float32)), indices=zoo.init("i", np.array([1])), dims=[2**30, 2**30])
    (tmp_path / "m.onnx").write_bytes(zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [], sparse=[sparse]).SerializeToString())
    assert check(tmp_path / "m.onnx").layers[0].two_four is None


def test_weights_of_no_elements(tmp_path):
    (tmp_path / "m.onnx").write_bytes(simple(np.zeros((0, 4), np.float32)).SerializeToString())
    (layer,) = check(tmp_path / "m.onnx").layers
    assert (layer.two_four, layer.zero_fraction) == (True, 0.0)


def test_messages_nested_past_measure_are_refused(tmp_path):
    body = h.make_graph([h.make_node("Relu", ["x"], ["y"])], "b", [], [onnx.ValueInfoProto(name="y")])
    data = body.SerializeToString()
    for _ in range(300):  # a node that holds a graph that holds a node ...
        attribute = _field(5, _field(1, b"g") + _field(6, data) + b"\xa0\x01\x05")
        data = _field(1, attribute + b"\x22\x02If" + b" " * 0 + _field(2, b"o" * 2000))
    (tmp_path / "m.onnx").write_bytes(b"\x08\x0b" + _field(7, data))
    with pytest.raises(InputError, match=r"m\.onnx"):
        check(tmp_path / "m.onnx")


def _field(number: int, body: bytes) -> bytes:
    from pipeline.graph.wire import _bytes

    return _bytes(number, body)


def test_no_thread_stays_behind(tmp_path):
    import threading

    (tmp_path / "m.onnx").write_bytes(simple().SerializeToString())
    (tmp_path / "cut.onnx").write_bytes(simple().SerializeToString()[:-9])
    before = threading.active_count()
    for _ in range(20):
        check(tmp_path / "m.onnx")
        with pytest.raises(InputError):
            check(tmp_path / "cut.onnx")
    end = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_memory_is_bounded_by_a_block_and_not_by_the_tensor(tmp_path):
    """A 240 MB weight, judged in a process of its own."""
    import subprocess
    import sys

    rows, columns = 30_000, 2_000
    with (tmp_path / "d.bin").open("wb") as file:
        file.truncate(rows * columns * 4)
    model = zoo.model_of([h.make_node("MatMul", ["x", "w"], ["y"])], [])
    tensor = model.graph.initializer.add(name="w", data_type=T.FLOAT, dims=[rows, columns], data_location=T.EXTERNAL)
    tensor.external_data.add(key="location", value="d.bin")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    script = """
import resource, sys
from pathlib import Path
from pipeline import graph
from pipeline.records.check import Target
import numpy, onnx, ml_dtypes
base = int([l for l in open('/proc/self/status') if l.startswith('RssAnon')][0].split()[1])
report = graph.check(Path(sys.argv[1]), Target())
peak = int([l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1])
print(report.totals.two_four, report.layers[0].zero_fraction, peak - base)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "m.onnx")], capture_output=True, text=True, env=os.environ, check=True
    )
    two_four, zeros, grown_kb = done.stdout.split()
    assert (two_four, zeros) == ("1", "1.0")
    assert int(grown_kb) < 120_000  # 64 MB of file pages, blocks, and the libraries that are loaded late
