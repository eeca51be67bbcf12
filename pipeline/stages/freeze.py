"""Stage 2, freeze: masks become plain zeros, proved against the masks, with outputs that equal the masked model's exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import StageError
from pipeline.records.checkpoint import Checkpoint
from pipeline.records.frozen import FrozenLayer, FrozenModel
from pipeline.stages.base import Sections, Work, pick
from pipeline.stages.feeds import feeds

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
    from pipeline import sparsity

    checkpoint = work.record("train", Checkpoint)
    weights, masks = work.state("train", checkpoint.weights), work.state("train", checkpoint.masks)
    if sparsity.mask_digest(masks) != checkpoint.mask_digest:
        raise StageError(
            "the masks are not those that training recorded", where=f"freeze: {checkpoint.masks.path}", hint="run again with --force train"
        )

    frozen = sparsity.freeze(weights, masks, on_regrowth=work.section("freeze")["on_regrowth"])
    masked = {**weights, **{name: weights[name] * mask for name, mask in masks.items()}}
    difference = _difference(work, masked, frozen.weights)
    if difference != 0.0:
        raise StageError(f"outputs of the frozen model differ from the masked model's by {difference:g}", where="freeze")
    decided = {decision.layer.weight: decision.layer for decision in checkpoint.layers}
    return FrozenModel(
        sparse=work.save_state("sparse", frozen.weights),
        dense=work.save_state("dense", work.state("train", checkpoint.dense)),
        mask_digest=frozen.mask_digest,
        weights_digest=frozen.weights_digest,
        layers=[
            FrozenLayer(layer=decided[name], proof=found.proof, zero_fraction=found.zero_fraction, text=found.text)
            for name, found in frozen.layers.items()
        ],
        max_difference=difference,
        remasked=frozen.remasked,
    )


def _difference(work: Work, masked: Mapping[str, Tensor], frozen: Mapping[str, Tensor], samples: int = 64) -> float:
    """Worst absolute difference of outputs between two state dicts of the same model, on samples of the select split."""
    import numpy as np

    from pipeline import sources, training

    source = sources.model_source(work.section("model"), work.base)
    data = work.data()
    inputs = feeds(data.select, min(samples, len(data.select)))
    outputs = []
    for state in (masked, frozen):
        model = source.make(work.seed)
        sources.load_into(model, state, where="freeze")
        outputs.append(training.forward(model, inputs, heads=data.heads))
    return max(float(np.abs(outputs[0][head] - outputs[1][head]).max()) for head in data.heads)
