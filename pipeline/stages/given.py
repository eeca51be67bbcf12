"""Where the chain is entered with an ONNX file instead of a torch model: the arms of the export stage, without training."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import InputError
from pipeline.records.arms import ExportedLayer, OnnxArm, OnnxArms
from pipeline.records.check import CheckedLayer, CheckReport, Target
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung

if TYPE_CHECKING:
    from pipeline.records.estimate import EstimateReport
    from pipeline.stages.base import Work


def arms_of_onnx(work: Work) -> OnnxArms:
    """The file as it is, or (with `model.prune`) as the dense arm beside a copy that is pruned 2:4 on its deployed axes."""
    from pipeline import sources

    model, batch = work.section("model"), dict(work.section("export")["batch"])
    source = sources.model_source(model, work.base).onnx
    assert source is not None
    given = copy_model(source, work.folder / ("dense.onnx" if model["prune"] else "sparse.onnx"))
    files = {"dense": given, "sparse": _pruned(given, work)} if model["prune"] else {"sparse": given}
    arms = [_arm(name, path, work) for name, path in files.items()]
    sparse = next(arm for arm in arms if arm.arm == "sparse")
    return OnnxArms(
        arms=arms,
        layers=[_layer(checked) for checked in sparse.check.layers],
        inputs=input_shapes(given),
        batch=batch,
        estimate=estimate(files["sparse"], batch["opt"]),
    )


def copy_model(source: Path, target: Path) -> Path:
    """Copy an ONNX file with the external data files that lie beside it.

    Raises:
        InputError: it is no ONNX model, or its external data is missing or lies outside its folder.
    """
    from pipeline.graph.model import open_external, open_model

    for location in open_external(open_model(source)):
        (target.parent / location).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / location, target.parent / location)
    shutil.copyfile(source, target)
    return target


def input_shapes(path: Path) -> dict[str, list[int | str]]:
    """Shape of every input: the first axis may be dynamic (`batch`), the others must be fixed.

    Raises:
        InputError: an input whose shape this chain cannot feed.
    """
    import onnx

    graph = onnx.load(str(path), load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    shapes: dict[str, list[int | str]] = {}
    for value in graph.input:
        if value.name in weights:
            continue
        sizes = [dim.dim_value or None for dim in value.type.tensor_type.shape.dim]
        if None in sizes[1:]:
            raise InputError(
                f"input {value.name!r} has a dynamic axis besides the batch: {sizes}", where=str(path), hint="fix the other axes first"
            )
        shapes[value.name] = ["batch" if size is None else size for size in sizes]
    return shapes


def _pruned(dense: Path, work: Work) -> Path:
    from pipeline import api

    target = work.folder / "sparse.onnx"
    api.prune_onnx(dense, target)
    return target


def _arm(name: str, path: Path, work: Work) -> OnnxArm:
    from pipeline import graph

    return OnnxArm(
        arm=name, model=work.artifact(path), precision=precision_of(path), opset=_opset(path), check=relative(graph.check(path, Target()))
    )


def estimate(sparse: Path, batch: int) -> EstimateReport | None:
    """Upper bounds of the gain by GPU, from shapes; None where the graph leaves shapes open."""
    import msgspec

    from pipeline import api

    try:
        found = api.estimate(sparse, batch=batch)
    except InputError:
        return None
    return msgspec.structs.replace(found, model=sparse.name, next="")


def relative(report: CheckReport) -> CheckReport:
    """The report without this machine's folder in it, so that the same model gives the same record."""
    import msgspec

    return msgspec.structs.replace(report, model=msgspec.structs.replace(report.model, path=Path(report.model.path).name))


def precision_of(path: Path) -> str:
    """`fp32`, `fp16` or `bf16`: the type of most of the weights' elements."""
    from collections import Counter
    from math import prod

    import onnx

    names = {onnx.TensorProto.FLOAT: "fp32", onnx.TensorProto.FLOAT16: "fp16", onnx.TensorProto.BFLOAT16: "bf16"}
    counts: Counter[str] = Counter()
    for tensor in onnx.load(str(path), load_external_data=False).graph.initializer:
        if tensor.data_type in names:
            counts[names[tensor.data_type]] += prod(tensor.dims)
    return counts.most_common(1)[0][0] if counts else "fp32"


def _opset(path: Path) -> int:
    import onnx

    imports = onnx.load(str(path), load_external_data=False).opset_import
    return next((int(item.version) for item in imports if item.domain in ("", "ai.onnx")), 0)


def _layer(checked: CheckedLayer) -> ExportedLayer:
    layer = WeightedLayer(
        id=checked.node, kind=checked.op, shape=checked.shape or [], initializer=checked.weight, onnx_nodes=[checked.node]
    )
    if checked.two_four is None:
        return ExportedLayer(layer=layer, proof=Rung.UNKNOWN, text="the weight is not a constant of the file")
    text = f"{checked.op} reads {checked.shape}, {'' if checked.two_four else 'not '}2:4 along axis {checked.axis}"
    return ExportedLayer(layer=layer, proof=Rung.YES if checked.two_four else Rung.NO, text=text)
