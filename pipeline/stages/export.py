"""Stage 3, export: ONNX arms `sparse` and `dense`, rung 3 on the operator's own reduction axis, parity at min, opt and max batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import StageError
from pipeline.records.arms import ExportedLayer, OnnxArm, OnnxArms, Parity
from pipeline.records.checkpoint import Checkpoint
from pipeline.records.frozen import FrozenModel
from pipeline.records.rung import Rung
from pipeline.stages.base import Sections, Work, pick
from pipeline.stages.exported import checked, estimate
from pipeline.stages.feeds import feeds

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import nn

    from pipeline.graph.identity import JoinedLayer

REVISION = 2
NEEDS = ("train", "freeze")
PACKAGES = ("torch", "torchvision", "timm", "onnx", "onnxscript", "onnxruntime")


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Its own section, the model and data, and the packages that write and check the file."""
    from pipeline import machine, sources

    given = sources.digests(sections["model"], base) if sections["model"].get("onnx") else {}
    return {**pick(sections, "export", "model", "data"), "sources": given, "packages": machine.package_versions(PACKAGES)}


def execute(work: Work) -> OnnxArms:
    """Export both arms, prove rung 3 of every masked layer, and compare with torch; an ONNX model enters here as it is."""
    if work.section("model").get("onnx"):
        from pipeline.stages.given import arms_of_onnx

        return arms_of_onnx(work)
    return _from_torch(work)


def _from_torch(work: Work) -> OnnxArms:
    from pipeline import sources

    section = work.section("export")
    frozen = work.record("freeze", FrozenModel)
    source = sources.model_source(work.section("model"), work.base)
    data = work.data()
    heads = tuple(data.heads)

    arms: list[OnnxArm] = []
    parity: list[Parity] = []
    for name, weights in (("sparse", frozen.sparse), ("dense", frozen.dense)):
        model = source.make(work.seed)
        sources.load_into(model, work.state("freeze", weights), where=f"export: {weights.path}")
        arm = _export(model, name, feeds(data.select, _example_batch(section["batch"])), heads, work)
        arms.append(arm)
        parity += [_compare(model, arm, feeds(data.select, size), heads, work) for size in sorted(set(section["batch"].values()))]
    _must_agree(parity)
    return OnnxArms(
        arms=arms,
        layers=_prove(work, arms[0]),
        parity=parity,
        inputs={name: ["batch", *array.shape[1:]] for name, array in feeds(data.select, 1).items()},
        batch=dict(section["batch"]),
        estimate=estimate(work.folder / arms[0].model.path, section["batch"]["opt"]),
    )


def _example_batch(batch: Mapping[str, int]) -> int:
    """A size inside the range; not 1 where the range allows more, since 1 is traced as a constant."""
    return max(batch["min"], min(2, batch["max"]))


def _export(model: nn.Module, name: str, example: Mapping[str, np.ndarray], heads: tuple[str, ...], work: Work) -> OnnxArm:
    import torch

    from pipeline.graph.export import export_model

    section = work.section("export")
    path = work.folder / f"{name}.onnx"
    work.progress(f"export {name}", 0, text=section["precision"])
    export_model(
        model,
        {key: torch.from_numpy(array) for key, array in example.items()},
        path,
        outputs=heads,
        precision=section["precision"],
        opset=section["opset"],
        batch=section["batch"],
    )
    return OnnxArm(arm=name, model=work.artifact(path), precision=section["precision"], opset=section["opset"], check=checked(path))


def _compare(model: nn.Module, arm: OnnxArm, inputs: Mapping[str, np.ndarray], heads: tuple[str, ...], work: Work) -> Parity:
    from pipeline import training
    from pipeline.graph.parity import compare

    def reference(inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return training.forward(model, inputs, heads=heads)

    return compare(work.folder / arm.model.path, reference, inputs, arm=arm.arm, precision=arm.precision)


def _must_agree(parity: list[Parity]) -> None:
    for result in parity:
        if not result.passed:
            raise StageError(
                f"the ONNX file and torch disagree at batch {result.batch}: {result.max_rel:.2g} of the largest output"
                + ("" if result.repeatable else ", and two equal calls gave different bytes"),
                where=f"export: {result.arm}.onnx",
                hint="try export.precision: fp32 to see whether the precision is the cause",
            )


def _prove(work: Work, sparse: OnnxArm) -> list[ExportedLayer]:
    """Rung 3 of every layer that training decided about; a masked one that is not 2:4 stops the run."""
    from pipeline.graph.identity import join

    checkpoint = work.record("train", Checkpoint)
    joined = join(work.folder / sparse.model.path, [decision.layer for decision in checkpoint.layers], sparse.check)
    proofs = [_proof(found) for found in joined]
    masked = {decision.layer.id for decision in checkpoint.layers if decision.masked}
    broken = [proof for proof in proofs if proof.layer.id in masked and proof.proof is not Rung.YES]
    if broken:
        raise StageError(
            "masked layers are not 2:4 where the ONNX operator reads them: "
            + "; ".join(f"{proof.layer.id}: {proof.text}" for proof in broken),
            where=f"export: {sparse.model.path}",
            hint=f"sparsegate check {work.folder / sparse.model.path}",
        )
    return proofs


def _proof(found: JoinedLayer) -> ExportedLayer:
    if not found.operands:
        return ExportedLayer(layer=found.layer, proof=Rung.UNKNOWN, text="no ONNX node could be traced to this weight")
    bad = next((operand for operand in found.operands if not operand.two_four), None)
    if bad is None:
        first = found.operands[0]
        return ExportedLayer(
            layer=found.layer, proof=Rung.YES, text=f"{first.op} {first.node} reads {first.shape}, 2:4 along axis {first.axis}"
        )
    why = (
        "no multiple of 4"
        if bad.shape and bad.axis is not None and bad.shape[bad.axis] % 4
        else f"{bad.groups_violating} groups of 4 violate it"
    )
    return ExportedLayer(
        layer=found.layer, proof=Rung.NO, text=f"{bad.op} {bad.node} reads {bad.shape}, not 2:4 along axis {bad.axis}: {why}"
    )
