"""Does the ONNX file compute what the torch model computes, at every batch size of its range, and the same thing twice?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import StageError
from pipeline.records.arms import Parity

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]
    Run = Callable[[Arrays], Arrays]

TOLERANCE = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 1e-1}
"""Largest allowed absolute difference, as a share of the largest absolute reference output.

fp32: a few thousand float32 roundings; fp16 and bf16: their unit roundoff (2**-11, 2**-8) over about ten layers.
"""


def compare(path: Path, reference: Run, feeds: Arrays, *, arm: str, precision: str) -> Parity:
    """Run a file in ONNX Runtime and compare with the reference outputs.

    Args:
        path: ONNX file.
        reference: Maps inputs to outputs by name, both [batch, ...] float32.
        feeds: Inputs; the batch size is that of the first.
        arm: Name for the record.
        precision: Chooses the tolerance.
    """
    import numpy as np

    run = session(widened(path) if precision == "bf16" else path, where=path)
    wanted, got, again = reference(feeds), run(feeds), run(feeds)
    same_rows = run({name: np.repeat(array[:1], len(array), axis=0) for name, array in feeds.items()})
    absolute = max(float(np.abs(got[name].astype(np.float64) - wanted[name]).max()) for name in wanted)
    scale = max(float(np.abs(wanted[name]).max()) for name in wanted)
    agreement = min(
        float(np.mean(got[name].reshape(len(got[name]), -1).argmax(1) == wanted[name].reshape(len(wanted[name]), -1).argmax(1)))
        for name in wanted
    )
    finite = all(bool(np.isfinite(got[name]).all()) for name in wanted)
    relative = absolute / scale if scale else absolute
    rows_identical = all(bool((array == array[:1]).all()) for array in same_rows.values())
    repeatable = all(got[name].tobytes() == again[name].tobytes() for name in got)
    return Parity(
        arm=arm,
        batch=len(next(iter(feeds.values()))),
        max_abs=absolute,
        max_rel=relative,
        agreement=agreement,
        rows_identical=rows_identical,
        repeatable=repeatable,
        passed=finite and relative <= TOLERANCE[precision] and repeatable,
        computed="float32 copy" if precision == "bf16" else "as exported",
    )


def session(model: Path | bytes, *, where: Path) -> Run:
    """A model as a callable on the CPU; outputs by name.

    Args:
        model: The file, or a serialised model without external data.
        where: What errors name.

    Raises:
        StageError: ONNX Runtime refuses the model.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    try:
        loaded = ort.InferenceSession(str(model) if isinstance(model, Path) else model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 (onnxruntime's errors share no public base class)
        raise StageError(f"ONNX Runtime refuses the file: {str(error).splitlines()[0]}", where=str(where)) from None
    names = [output.name for output in loaded.get_outputs()]
    return lambda feeds: dict(zip(names, loaded.run(names, dict(feeds)), strict=True))


def widened(path: Path) -> bytes:
    """A float32 copy of a bfloat16 model: ONNX Runtime 1.32 has no bfloat16 convolution on the CPU.

    The weights are the exported ones, so that the copy shows structure and rounded weights, not bfloat16 arithmetic.
    """
    import numpy as np
    import onnx
    from onnx import TensorProto, numpy_helper

    model = onnx.load(str(path))
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.BFLOAT16:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == TensorProto.BFLOAT16:
                attribute.i = TensorProto.FLOAT
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.BFLOAT16:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float32), attribute.t.name))
    del model.graph.value_info[:]
    return bytes(model.SerializeToString())
