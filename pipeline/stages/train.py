"""Stage 1, train: dense baseline -> 2:4 masks -> fine-tuning with the masks held."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.checkpoint import CalibrationSet, Checkpoint
from pipeline.stages import masking
from pipeline.stages.base import Sections, Work, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from torch import nn
    from torch.optim import Optimizer

    from pipeline.records.artifact import Artifact
    from pipeline.records.quality import Quality
    from pipeline.sources.base import Data, Split
    from pipeline.sparsity import Proposal

REVISION = 1
NEEDS: tuple[str, ...] = ()
PACKAGES = ("torch", "torchvision", "timm", "nvidia-modelopt", "scikit-learn", "numba")


def key(sections: Sections, base: Path) -> dict[str, Any]:
    """Model, data, training section, seed, the files that they read, and the packages that compute."""
    from pipeline import machine, sources

    return {
        **pick(sections, "model", "data", "train", "seed"),
        "gpus": machine.gpus() if sections["train"]["device"] != "cpu" else [],
        "sources": {**sources.digests(sections["model"], base), **sources.digests(sections["data"], base)},
        "earlier": masking.earlier_records(sections["train"]["masks"], base),
        "packages": machine.package_versions(PACKAGES),
    }


def execute(work: Work) -> Checkpoint:
    """Train the dense baseline, choose masks, train with them held; evaluate both models on the splits that trained nothing."""
    from pipeline import sources, sparsity

    source = sources.model_source(work.section("model"), work.base)
    data = work.data()
    device = _device(work)

    model = source.make(work.seed)
    if not source.trained:
        _fit(model, "dense", work, data, device)
    dense = work.save_state("dense", model.state_dict())
    dense_quality = _evaluate(model, "dense", data, device, work)

    proposal, permutation = masking.choose(model, data, work, device)
    holder = sparsity.hold(model, proposal.masks)
    _fit(model, "finetune", work, data, device, attach=holder.attach)
    holder.detach()
    masked_quality = _evaluate(model, "masked", data, device, work)

    return Checkpoint(
        dense=dense,
        weights=work.save_state("weights", model.state_dict()),
        masks=work.save_state("masks", proposal.masks),
        mask_digest=sparsity.mask_digest(proposal.masks),
        history=_history(work),
        layers=proposal.decisions,
        dense_quality=dense_quality,
        masked_quality=masked_quality,
        device=device,
        calibration=_calibrated(proposal),
        permutation=permutation,
    )


def _calibrated(proposal: Proposal) -> CalibrationSet | None:
    if proposal.calibration_digest is None or proposal.calibration_samples is None:
        return None
    return CalibrationSet(digest=proposal.calibration_digest, samples=proposal.calibration_samples)


def _device(work: Work) -> str:
    import torch

    wanted = str(work.section("train")["device"])
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted


def _fit(model: nn.Module, phase: str, work: Work, data: Data, device: str, attach: Callable[[Optimizer], None] | None = None) -> None:
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
        attach=attach,
        select=data.select,
        folder=work.folder,
        progress=work.progress,
    )


def _evaluate(model: nn.Module, who: str, data: Data, device: str, work: Work) -> list[Quality]:
    from pipeline import training
    from pipeline.stages.evaluation import evaluate

    threads = work.section("train")["threads"]

    def predict(split: Split) -> Mapping[str, np.ndarray]:
        return training.predict(model, split, heads=data.heads, device=device, threads=threads)

    return evaluate(predict, data, who=who, backend="torch", work=work)


def _history(work: Work) -> Artifact | None:
    """The epochs' CSV; the state to resume from has served."""
    from pipeline import training

    training.clear(work.folder)
    path = work.folder / "history.csv"
    return work.artifact(path) if path.is_file() else None
