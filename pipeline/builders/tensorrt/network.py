"""ONNX file -> network, with the parser's own errors by node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.builders.options import TensorRTOptions
from pipeline.builders.versions import Version, has, is_strong
from pipeline.errors import InputError, StageError
from pipeline.paths import missing


def network_flags(options: TensorRTOptions, version: Version, trt: Any) -> list[str]:
    """Names of the creation flags: EXPLICIT_BATCH before 10 (the only kind since), STRONGLY_TYPED where asked and not the only kind."""
    names = []
    if version < (10, 0):
        names.append(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH.name)
    if is_strong(options, version) and has("weak typing", version):
        names.append(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED.name)
    return names


def parse(builder: Any, trt: Any, logger: Any, onnx: Path, flags: list[str]) -> tuple[Any, Any]:
    """Parse a file into a new network.

    Returns:
        The network and its parser, which must live as long as the network: it owns the weights.

    Raises:
        InputError: no such file, or an empty one (the parser calls that a success).
        StageError: the parser refuses; says which node and why.
    """
    if not onnx.is_file():
        raise InputError("no such file", where=str(onnx), hint=missing(onnx))
    mask = 0
    for name in flags:
        mask |= 1 << int(getattr(trt.NetworkDefinitionCreationFlag, name))
    network = builder.create_network(mask)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(onnx)):
        errors = [_sentence(parser.get_error(index)) for index in range(parser.num_errors)]
        raise StageError(
            "TensorRT cannot parse the model: " + ("; ".join(errors) or "it gives no reason"),
            where=str(onnx),
            hint="sparsegate check on the file",
        )
    if network.num_layers == 0 or network.num_outputs == 0:
        raise InputError("the model has no layers or no outputs", where=str(onnx))
    return network, parser


def _sentence(error: Any) -> str:
    """One parser error with its node; node_name and node_operator came with 10.0."""
    name = getattr(error, "node_name", None)
    operator = getattr(error, "node_operator", None)
    node = f"node {name()!r}" if callable(name) and name() else f"node {error.node()}"
    kind = f" ({operator()})" if callable(operator) and operator() else ""
    return f"{node}{kind}: {error.desc()} [{error.code().name}]"


def inputs_of(network: Any) -> dict[str, list[int]]:
    """Shape by input name, -1 where an axis is dynamic.

    Raises:
        InputError: an input whose values are a shape: a profile gives shapes, and such an input needs values.
    """
    tensors = [network.get_input(index) for index in range(network.num_inputs)]
    values = [tensor.name for tensor in tensors if tensor.is_shape_tensor]
    if values:
        raise InputError(
            f"the values of {', '.join(values)} are a shape, and build.profiles gives shapes alone",
            where="ONNX inputs",
            hint="make them constants of the file (onnxsim, polygraphy surgeon sanitize --override-input-shapes)",
        )
    return {tensor.name: list(tensor.shape) for tensor in tensors}
