"""Stage 2, freeze: masks become plain zeros, proved against the masks, with outputs that equal the masked model's exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import StageError
from pipeline.records.checkpoint import Checkpoint
from pipeline.records.frozen import FrozenLayer, FrozenModel
from pipeline.stages.base import Sections, Work, pick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

REVISION = 1
NEEDS = ("train",)


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Its own section, the model and data that prove equality, and torch."""
    from pipeline import machine

    return {**pick(sections, "freeze", "model", "data"), "packages": machine.package_versions(("torch",))}


def execute(work: Work) -> FrozenModel:
    """Freeze the checkpoint's masked weights and prove rung 2 per layer."""
    from pipeline import sources, sparsity

    checkpoint = work.record("train", Checkpoint)
    weights = sources.load_state(work.file("train", checkpoint.weights))
    dense = sources.load_state(work.file("train", checkpoint.dense))
    masks = sources.load_state(work.file("train", checkpoint.masks))
    if sparsity.mask_digest(masks) != checkpoint.mask_digest:
        raise StageError(
            "the masks are not those that training recorded", where=f"freeze: {checkpoint.masks.path}", hint="run again with --force train"
        )

    frozen = sparsity.freeze(weights, masks, on_regrowth=work.section("freeze")["on_regrowth"])
    difference = _difference(work, {**weights, **{name: weights[name] * mask for name, mask in masks.items()}}, frozen.weights)
    if difference != 0.0:
        raise StageError(f"outputs of the frozen model differ from the masked model's by {difference:g}", where="freeze")
    decided = {decision.layer.weight: decision.layer for decision in checkpoint.layers}
    return FrozenModel(
        sparse=work.artifact(sources.save_state(work.folder / "sparse.safetensors", frozen.weights)),
        dense=work.artifact(sources.save_state(work.folder / "dense.safetensors", dense)),
        mask_digest=frozen.mask_digest,
        weights_digest=frozen.weights_digest,
        layers=[
            FrozenLayer(layer=decided[proof.weight], proof=proof.rung, zero_fraction=proof.zero_fraction, text=proof.text)
            for proof in frozen.proofs
        ],
        max_difference=difference,
        remasked=frozen.remasked,
    )


def _difference(work: Work, masked: Mapping[str, Tensor], frozen: Mapping[str, Tensor], samples: int = 64) -> float:
    """Worst absolute difference of outputs between two state dicts of the same model, on samples of the select split."""
    import numpy as np

    from pipeline import sources, training

    source = sources.model_source(work.section("model"), work.base)
    data = sources.data_source(work.section("data"), work.base)
    part = sources.Subset(data.select, np.arange(min(samples, len(data.select))))
    outputs = []
    for state in (masked, frozen):
        model = source.build()
        model.load_state_dict(dict(state))
        outputs.append(training.predict(model, part, heads=tuple(data.heads), device="cpu"))
    return max(float(np.abs(outputs[0][head].astype(np.float64) - outputs[1][head]).max()) for head in data.heads)
