"""The part of `train` between the dense baseline and fine-tuning: channel order, which layers, and their masks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError
from pipeline.records.arms import OnnxArms
from pipeline.records.io import read, sha256_file
from pipeline.records.permutation import PermutationReport
from pipeline.records.tactics import TacticReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from pipeline.sources.base import Data
    from pipeline.sparsity import Proposal
    from pipeline.stages.base import Work

BATCH = 64
"""Samples per calibration batch."""


def earlier_records(masks: Mapping[str, Any], base: Path) -> dict[str, str]:
    """Digests of the earlier run's records that decide which layers stay dense: part of the stage's key."""
    if not masks.get("only_where_selected"):
        return {}
    folder = _run_folder(str(masks["only_where_selected"]), base)
    return {name: sha256_file(folder / "records" / f"{name}.json") for name in ("tactics", "export")}


def choose(model: nn.Module, data: Data, work: Work, device: str) -> tuple[Proposal, PermutationReport | None]:
    """Permute channels if the recipe gives that time, then propose masks and write what the criterion updates.

    Args:
        model: Dense and trained, on the CPU; changed in place, and on the CPU after.
        data: Calibration samples come from its training split.
        work: The stage's recipe sections.
        device: Where calibration runs.
    """
    from pipeline import sparsity

    masks = work.section("train")["masks"]
    include, exclude = masks["include"], masks["exclude"]
    permutation = None
    if masks["permute_seconds"] > 0:
        example = _calibration(data, 1)[0]
        permutation = sparsity.permute(
            *(model, example), seconds=masks["permute_seconds"], seed=work.seed, include=include, exclude=exclude, progress=work.progress
        )
    calibration = _calibration(data, masks["calibration_samples"]) if masks["criterion"] != "magnitude" else None
    model.to(device)
    proposal = sparsity.propose(
        model,
        criterion=masks["criterion"],
        include=include,
        exclude=exclude,
        calibration=calibration,
        seed=work.seed,
        proposer=masks["proposer"],
        siblings=masks["siblings"],
        give_back=_given_back(masks, work.base),
        progress=work.progress,
    )
    proposal.apply(model)
    model.to("cpu")
    proposal.masks = {key: mask.cpu() for key, mask in proposal.masks.items()}
    return proposal, permutation


def _given_back(masks: Mapping[str, Any], base: Path) -> dict[str, str]:
    """Weights that stay dense because the earlier run selected no sparse tactic for them, with the reason."""
    if not masks["only_where_selected"]:
        return {}
    from pipeline import sparsity

    folder = _run_folder(str(masks["only_where_selected"]), base)
    layers = [exported.layer for exported in read(folder / "records" / "export.json", OnnxArms).layers]
    report = read(folder / "records" / "tactics.json", TacticReport)
    returned = sparsity.only_where_selected(report, layers, builds=masks["stable_builds"])
    return {key: f"{text} of {folder.name}" for key, text in returned.dense.items()}


def _run_folder(run: str, base: Path) -> Path:
    for folder in (base / run, Path(run), Path("logs") / run):
        if all((folder / "records" / f"{name}.json").is_file() for name in ("tactics", "export")):
            return folder
    raise InputError(
        f"no run {run!r} with records of the stages export and tactics",
        where="train.masks.only_where_selected",
        hint="name a run's folder, such as logs/<recipe>/<run-id>",
    )


def _calibration(data: Data, samples: int) -> list[tuple[Tensor, ...]]:
    """Inputs of the training split, spread over it."""
    import numpy as np
    import torch

    count = min(len(data.train), samples)
    index = np.linspace(0, len(data.train) - 1, count).astype(np.int64)
    parts = np.array_split(index, max(1, count // BATCH))
    return [tuple(torch.from_numpy(array) for array in data.train.batch(part)[0].values()) for part in parts]
