"""Stage 1, train: dense baseline -> 2:4 masks -> fine-tuning with the masks held."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.checkpoint import Checkpoint
from pipeline.stages.base import Sections, Work, pick

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from pipeline.records.quality import Quality
    from pipeline.sources.base import Data, ModelSource

REVISION = 1
NEEDS: tuple[str, ...] = ()
PACKAGES = ("torch", "torchvision", "timm", "nvidia-modelopt", "scikit-learn", "numba")
SPLITS = ("select", "test")


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Model, data, training section, seed, the files that they read, and the packages that compute."""
    from pipeline import machine, sources

    return {
        **pick(sections, "model", "data", "train", "seed"),
        "gpus": machine.gpus() if sections["train"]["device"] != "cpu" else [],
        "sources": {**sources.digests(sections["model"], base), **sources.digests(sections["data"], base)},
        "packages": machine.package_versions(PACKAGES),
    }


def execute(work: Work) -> Checkpoint:
    """Train the dense baseline, choose masks, train with them held, and evaluate both models on the splits that trained nothing."""
    from pipeline import sources, sparsity

    section = work.section("train")
    source = sources.model_source(work.section("model"), work.base)
    data = sources.data_source(work.section("data"), work.base)
    device = _device(section["device"])

    model = _new_model(source, work)
    _fit(model, "dense", work, data, device)
    dense = sources.save_state(work.folder / "dense.safetensors", model.state_dict())
    dense_quality = _evaluate(model, "dense", source, data, device, work)

    masks = section["masks"]
    proposal = sparsity.propose(
        model,
        criterion=masks["criterion"],
        include=masks["include"],
        exclude=masks["exclude"],
        calibration=_calibration(data),
        seed=work.seed,
    )
    proposal.apply(model)
    holder = sparsity.hold(model, proposal.masks)
    _fit(model, "finetune", work, data, device, attach=holder.attach)
    holder.detach()
    masked_quality = _evaluate(model, "masked", source, data, device, work)

    return Checkpoint(
        dense=work.artifact(dense),
        weights=work.artifact(sources.save_state(work.folder / "weights.safetensors", model.state_dict())),
        masks=work.artifact(sources.save_state(work.folder / "masks.safetensors", proposal.masks)),
        mask_digest=sparsity.mask_digest(proposal.masks),
        history=work.artifact(history) if (history := work.folder / "history.csv").is_file() else None,
        layers=proposal.decisions,
        dense_quality=dense_quality,
        masked_quality=masked_quality,
        device=device,
    )


def _device(wanted: str) -> str:
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted


def _new_model(source: ModelSource, work: Work) -> nn.Module:
    """A fresh model, initialised from the recipe's seed, with the recipe's checkpoint where it names one."""
    import torch

    from pipeline import sources

    torch.manual_seed(work.seed)
    model: nn.Module = source.build()
    if checkpoint := work.section("model").get("checkpoint"):
        model.load_state_dict(sources.load_state(work.base / checkpoint))
    return model


def _fit(model: nn.Module, phase: str, work: Work, data: Data, device: str, **hooks: Any) -> None:
    from pipeline import training

    section = work.section("train")
    training.fit(
        model,
        data.train,
        heads=data.heads,
        phase={**section[phase], "name": phase},
        seed=work.seed,
        device=device,
        threads=section["threads"],
        select=data.select,
        folder=work.folder,
        progress=work.progress,
        **hooks,
    )


def _evaluate(model: nn.Module, who: str, source: ModelSource, data: Data, device: str, work: Work) -> list[Quality]:
    from pipeline import training
    from pipeline.stages.evaluation import evaluate

    def predict(split: Any) -> Mapping[str, Any]:
        return training.predict(model, split, heads=tuple(data.heads), device=device)

    return evaluate(predict, data, who=who, backend="torch", work=work)


def _calibration(data: Data, batches: int = 8, size: int = 64) -> list[dict[str, Tensor]]:
    """Inputs of the training split for criteria that look at activations."""
    import numpy as np
    import torch

    count = min(len(data.train), batches * size)
    index = np.linspace(0, len(data.train) - 1, count).astype(np.int64)
    return [
        {name: torch.from_numpy(array) for name, array in data.train.batch(part)[0].items()}
        for part in np.array_split(index, max(1, count // size))
    ]
