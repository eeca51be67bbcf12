"""Where the chain is entered with an ONNX file instead of a torch model: the arms of the export stage, without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.records.arms import ExportedLayer, OnnxArm, OnnxArms
from pipeline.records.check import CheckedLayer
from pipeline.records.layers import WeightedLayer
from pipeline.records.rung import Rung
from pipeline.stages.exported import checked, estimate

if TYPE_CHECKING:
    from pipeline.stages.base import Work


def arms_of_onnx(work: Work) -> OnnxArms:
    """The file as it is, or (with `model.prune`) as the dense arm beside a copy that is pruned 2:4 on its deployed axes."""
    from pipeline import sources
    from pipeline.graph.intake import copy_model, input_shapes

    model, batch = work.section("model"), dict(work.section("export")["batch"])
    source = sources.model_source(model, work.base).onnx
    assert source is not None
    if model["prune"]:
        given = copy_model(source, _dense_folder(source, work) / "dense.onnx")
        files = {"dense": given, "sparse": _pruned(given, work)}
    else:
        given = copy_model(source, work.folder / "sparse.onnx")
        files = {"sparse": given}
    arms = [_arm(name, path, work) for name, path in files.items()]
    sparse = next(arm for arm in arms if arm.arm == "sparse")
    return OnnxArms(
        arms=arms,
        layers=[_layer(found) for found in sparse.check.layers],
        inputs=input_shapes(given),
        batch=batch,
        estimate=estimate(files["sparse"], batch["opt"]),
    )


def _dense_folder(source: Path, work: Work) -> Path:
    """One of its own where there is external data: the pruned copy's has the same names."""
    from pipeline.graph.intake import external_data

    return work.folder / "dense" if external_data(source) else work.folder


def _pruned(dense: Path, work: Work) -> Path:
    from pipeline import api

    target = work.folder / "sparse.onnx"
    api.prune_onnx(dense, target)
    return target


def _arm(name: str, path: Path, work: Work) -> OnnxArm:
    from pipeline.graph.intake import opset_of, precision_of

    return OnnxArm(arm=name, model=work.artifact(path), precision=precision_of(path), opset=opset_of(path), check=checked(path))


def _layer(found: CheckedLayer) -> ExportedLayer:
    layer = WeightedLayer(id=found.node, kind=found.op, shape=found.shape or [], initializer=found.weight, onnx_nodes=[found.node])
    if found.two_four is None:
        return ExportedLayer(layer=layer, proof=Rung.UNKNOWN, text="the weight is not a constant of the file")
    text = f"{found.op} reads {found.shape}, {'' if found.two_four else 'not '}2:4 along axis {found.axis}"
    return ExportedLayer(layer=layer, proof=Rung.YES if found.two_four else Rung.NO, text=text)
