"""A given ONNX file enters the chain with its external data, and only with what lies beside it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pipeline.errors import InputError
from pipeline.graph.intake import copy_model


def model_in(folder, location):
    folder.mkdir()
    weights = [numpy_helper.from_array(np.full((64, 64), value, np.float32), name) for value, name in ((1, "w"), (2, "v"))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "v"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], weights))
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location=location, size_threshold=0)
    return folder / "m.onnx"


def test_a_copy_holds_its_external_data_in_place(tmp_path):
    source = model_in(tmp_path / "from", "weights.bin")
    (tmp_path / "to").mkdir()
    copy = copy_model(source, tmp_path / "to" / "sparse.onnx")
    assert {path.name for path in copy.parent.iterdir()} == {"sparse.onnx", "weights.bin"}
    assert copy.read_bytes() == source.read_bytes()
    assert [numpy_helper.to_array(tensor).max() for tensor in onnx.load(copy).graph.initializer] == [1, 2]


def test_external_data_that_is_gone_or_outside_is_refused_before_anything_is_copied(tmp_path):
    source = model_in(tmp_path / "from", "weights.bin")
    (tmp_path / "to").mkdir()
    (source.parent / "weights.bin").rename(tmp_path / "weights.bin")
    with pytest.raises(InputError, match=r"'weights\.bin' does not exist"):
        copy_model(source, tmp_path / "to" / "sparse.onnx")
    (source.parent / "weights.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(InputError, match="outside the model's folder"):
        copy_model(source, tmp_path / "to" / "sparse.onnx")
    assert list((tmp_path / "to").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(64)])
def test_what_is_no_model_is_not_copied(content, tmp_path):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(InputError, match=r"m\.onnx"):
        copy_model(tmp_path / "m.onnx", tmp_path / "sparse.onnx")
    assert not (tmp_path / "sparse.onnx").exists()
