"""The door to mask choice: which layers are masked, by whom, what is kept, and the proof of rung 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from pipeline.errors import StageError
from pipeline.records.checkpoint import LayerDecision
from pipeline.records.rung import Rung
from pipeline.sparsity import asp
from pipeline.sparsity.candidates import why_dense
from pipeline.sparsity.choose import kept_share, magnitude_mask, refuse_nonfinite
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
) -> Proposal:
    """Propose 2:4 masks along TensorRT's reduction axis; the model is left as it is.

    Args:
        model: Trained; its masked weights must be finite.
        criterion: `magnitude`.
        include: Globs over layer names: candidates (`*` any text, `?` one character, `[` literal).
        exclude: Globs over layer names: stay dense.
        calibration: Batches of model inputs, for criteria that need them.
        seed: Of whatever the criterion draws.

    Returns:
        The proposal; `decisions` covers every layer.

    Raises:
        InputError: a pattern that matches no layer.
        StageError: weights that are not finite, or a mask that is not 2:4 (never handed on).
    """
    sites = find_sites(model)
    dense = why_dense(sites, include=include, exclude=exclude)
    chosen = [site for site in sites if site.key not in dense]
    for site in chosen:
        refuse_nonfinite(site.weight, site.layer)
    theirs = asp.propose_masks({site.key: site.weight for site in chosen if asp.applies(site.kind, site.shape)})
    masks: dict[str, torch.Tensor] = {}
    decisions = []
    for site in sites:
        if site.key in dense:
            rule, text = dense[site.key]
            decisions.append(LayerDecision(layer=site.record(), masked=False, rule=rule, text=text, proof=Rung.NOT_APPLICABLE))
            continue
        mask = theirs[site.key] if site.key in theirs else magnitude_mask(site.weight)
        decisions.append(_masked(site, mask, criterion, "modelopt" if site.key in theirs else "sparsegate"))
        for key in site.keys:
            masks[key] = mask.clone()
    return Proposal(masks=masks, decisions=decisions)


def _masked(site: Site, mask: torch.Tensor, criterion: str, proposer: str) -> LayerDecision:
    if not is_two_four(mask, AXIS):
        raise StageError(f"the mask that {proposer} proposed is not 2:4 along the input channels", where=site.layer)
    kept = kept_share(site.weight, mask)
    return LayerDecision(
        layer=site.record(),
        masked=True,
        rule="SG301",
        text=f"masked 2:4 along {site.shape[AXIS]} input channels; {kept:.1%} of the absolute weight is kept",
        proposed_by=proposer,
        criterion=criterion,
        kept_magnitude=kept,
        proof=Rung.YES,
    )
