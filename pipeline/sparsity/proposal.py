"""The door to mask choice: which layers are masked, by whom, what is kept, and the proof of rung 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from pipeline.errors import InputError, StageError
from pipeline.progress import Progress, silent
from pipeline.records.checkpoint import LayerDecision
from pipeline.records.rung import Rung
from pipeline.sparsity.calibration import Calibration
from pipeline.sparsity.candidates import why_dense
from pipeline.sparsity.choose import kept_share, refuse_nonfinite
from pipeline.sparsity.criteria.first_order import Loss
from pipeline.sparsity.criteria.run import CRITERIA, NOT_REACHED, Choice, Setting
from pipeline.sparsity.siblings import dense_with_siblings, sibling_sets
from pipeline.sparsity.sites import Site, find_sites
from pipeline.sparsity.two_four import AXIS, is_two_four


@dataclass(kw_only=True)
class Proposal:
    """Masks, and a decision for every layer that has a weight matrix."""

    masks: dict[str, torch.Tensor]
    """bool, of the weight's shape, True where kept; a shared weight under each of its names in the state dict."""
    decisions: list[LayerDecision]
    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    """New values of masked weights, where the criterion updates them; empty otherwise."""
    calibration_digest: str | None = None
    """sha256 of the calibration batches, where the criterion used them."""
    calibration_samples: int | None = None

    def apply(self, model: nn.Module) -> None:
        """Write the updated weights, if the criterion has any, into the model."""
        with torch.no_grad():
            state = model.state_dict(keep_vars=True)
            for key, value in self.weights.items():
                state[key].copy_(value)


def propose(
    model: nn.Module,
    *,
    criterion: str,
    include: Sequence[str] = ("*",),
    exclude: Sequence[str] = (),
    calibration: Iterable[Any] | None = None,
    seed: int = 0,
    proposer: str = "modelopt",
    siblings: str = "together",
    give_back: Mapping[str, str] | None = None,
    loss: Loss | None = None,
    progress: Progress = silent,
) -> Proposal:
    """Propose 2:4 masks along TensorRT's reduction axis; the model is left as it is.

    Args:
        model: Trained; its masked weights must be finite.
        criterion: A key of `criteria.run.CRITERIA`: magnitude, wanda, sparsegpt, sparsegpt-joint, first-order.
        include: Globs over layer names: candidates (`*` any text, `?` one character, `[` literal).
        exclude: Globs over layer names: stay dense.
        calibration: Batches of model inputs (a tensor, a tuple of positional or a mapping of keyword inputs), for all
            criteria but magnitude; they run on the model's device in eval mode.
        seed: Of whatever the criterion draws.
        proposer: magnitude: `modelopt` where it applies, or `sparsegate` alone (same kept magnitude, faster).
        siblings: `together` masks layers that TensorRT fuses side by side all or none; `apart` ignores that.
        give_back: Weight key -> why it stays dense after all: layers in which no sparse tactic was selected.
        loss: first-order: from outputs and the batch's number to a scalar; random projections of the outputs when absent.
        progress: Told of layers as they are done.

    Returns:
        The proposal; `decisions` covers every layer.

    Raises:
        InputError: an unknown criterion, missing calibration batches, or a pattern that matches no layer.
        StageError: weights or activations that are not finite, or a mask that is not 2:4 (never handed on).
    """
    if criterion not in CRITERIA:
        raise InputError(f"no criterion {criterion!r}", where="train.masks.criterion", hint=f"one of {', '.join(CRITERIA)}")
    sites = find_sites(model)
    batches = Calibration(calibration) if calibration is not None and criterion != "magnitude" else None
    dense = why_dense(sites, include=include, exclude=exclude)
    dense |= {site.key: ("SG311", give_back[key]) for site in sites for key in site.keys if give_back and key in give_back}
    if siblings == "together":
        dense |= dense_with_siblings(sibling_sets(model, sites, batches), dense)
    chosen = [site for site in sites if site.key not in dense]
    for site in chosen:
        refuse_nonfinite(site.weight, site.layer)
    choices = CRITERIA[criterion](model, chosen, Setting(batches, seed, proposer, loss, progress))
    return Proposal(
        masks={key: choices[site.key].mask.clone() for site in chosen for key in site.keys},
        decisions=[_dense(site, *dense[site.key]) if site.key in dense else _masked(site, choices[site.key], criterion) for site in sites],
        weights={site.key: weight for site in chosen if (weight := choices[site.key].weight) is not None},
        calibration_digest=batches.digest if batches is not None else None,
        calibration_samples=batches.samples if batches is not None else None,
    )


def _dense(site: Site, rule: str, text: str) -> LayerDecision:
    return LayerDecision(layer=site.record(), masked=False, rule=rule, text=text, proof=Rung.NOT_APPLICABLE)


def _masked(site: Site, choice: Choice, criterion: str) -> LayerDecision:
    if not is_two_four(choice.mask, AXIS):
        raise StageError(f"the mask that {choice.by} proposed is not 2:4 along the input channels", where=site.layer)
    kept = kept_share(site.weight, choice.mask)
    said = [f"masked 2:4 along {site.shape[AXIS]} input channels; {kept:.1%} of the absolute weight is kept"]
    if choice.error is not None:
        said.append(f"output error {choice.error:.2%} of its square (magnitude: {choice.magnitude_error:.2%})")
    if choice.note:
        said.append(choice.note)
    return LayerDecision(
        layer=site.record(),
        masked=True,
        rule="SG313" if choice.note == NOT_REACHED else "SG301",
        text="; ".join(said),
        proposed_by=choice.by,
        criterion="magnitude" if choice.note == NOT_REACHED else criterion,
        kept_magnitude=kept,
        output_error=choice.error,
        magnitude_error=choice.magnitude_error,
        proof=Rung.YES,
    )
