"""A plan file, read by TensorRT's own engine inspector where TensorRT is installed."""

from __future__ import annotations

import msgspec

from pipeline.errors import InputError, MissingPackageError
from pipeline.tactics.documents import Document, read_document
from pipeline.tactics.inputs import Opened


def read_plan(opened: Opened, source: int) -> Document:
    """Ask TensorRT what a plan holds: the same document as exportLayerInfo writes.

    Raises:
        MissingPackageError: TensorRT is not installed here.
        InputError: this TensorRT cannot load the plan.
    """
    try:
        import tensorrt as trt
    except ImportError:
        raise MissingPackageError("tensorrt", extra="tensorrt", purpose="reading a plan file") from None
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    engine = runtime.deserialize_cuda_engine(opened.whole())
    if engine is None:
        raise InputError(
            f"TensorRT {trt.__version__} cannot load this plan",
            where=opened.path,
            hint="read it with the version and on the GPU that it was built for, or give its --exportLayerInfo",
        )
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    content = msgspec.json.decode(text)
    return read_document(msgspec.json.encode(content), source, opened.path)
