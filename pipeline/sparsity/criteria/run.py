"""Applying a criterion to all chosen layers of a model: the table CRITERIA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from pipeline.errors import InputError, StageError
from pipeline.progress import Progress, silent
from pipeline.sparsity import asp
from pipeline.sparsity.calibration import Calibration, activations, order_of_use
from pipeline.sparsity.choose import magnitude_mask
from pipeline.sparsity.criteria.first_order import Loss, first_order_mask, gradient_squares, random_projection
from pipeline.sparsity.criteria.sparsegpt import Grams, reconstruction_error, sparsegpt
from pipeline.sparsity.criteria.wanda import SquareSums, wanda_mask
from pipeline.sparsity.layout import as_matrix, from_matrix
from pipeline.sparsity.sites import Site


@dataclass(frozen=True)
class Choice:
    """What a criterion chose for one layer."""

    mask: torch.Tensor
    """bool, of the weight's shape."""
    by: str = "sparsegate"
    weight: torch.Tensor | None = None
    """Updated weight, zero where masked; None where the criterion changes no values."""
    error: float | None = None
    """Squared error of the layer's output on the calibration set, relative to the output's own square."""
    magnitude_error: float | None = None
    """The same of the magnitude mask."""
    note: str = ""
    """What else the decision should say."""


@dataclass(frozen=True)
class Setting:
    """What criteria may use."""

    calibration: Calibration | None
    seed: int
    proposer: str
    loss: Loss | None
    progress: Progress = silent


Criterion = Callable[[nn.Module, Sequence[Site], Setting], dict[str, Choice]]
NOT_REACHED = "no calibration batch reaches it: masked by magnitude"


def _magnitude(model: nn.Module, sites: Sequence[Site], setting: Setting) -> dict[str, Choice]:
    theirs = {}
    if setting.proposer == "modelopt":
        theirs = asp.propose_masks({site.key: site.weight for site in sites if asp.applies(site.kind, site.shape)})
    return {
        site.key: Choice(theirs[site.key], by="modelopt") if site.key in theirs else Choice(magnitude_mask(site.weight)) for site in sites
    }


def _calibrated(setting: Setting, criterion: str) -> Calibration:
    if setting.calibration is None:
        raise InputError(f"the criterion {criterion} needs calibration batches", where="train.masks", hint="give some, or use magnitude")
    return setting.calibration


def _wanda(model: nn.Module, sites: Sequence[Site], setting: Setting) -> dict[str, Choice]:
    """One pass for the norms, one to compare with magnitude on the same data: the better of the two masks is taken."""
    calibration = _calibrated(setting, "wanda")
    norms = SquareSums()
    activations(model, sites, calibration, norms)
    by_key = {site.key: site for site in sites}
    masks: dict[str, torch.Tensor] = {}
    for (key, start, stop), squares in norms.sums.items():
        site = by_key[key]
        _refuse_nonfinite_activations(squares, site)
        matrix = as_matrix(site.weight)
        mask = masks.setdefault(key, as_matrix(magnitude_mask(site.weight)).clone())
        mask[start:stop] = wanda_mask(matrix[start:stop], squares)
    return _judged(model, sites, masks, calibration, never_above=True)


def _first_order(model: nn.Module, sites: Sequence[Site], setting: Setting) -> dict[str, Choice]:
    calibration = _calibrated(setting, "first-order")
    squares = gradient_squares(model, sites, calibration, setting.loss or random_projection(setting.seed))
    masks = {}
    for site in sites:
        if site.key in squares:
            _refuse_nonfinite_activations(squares[site.key], site)
            masks[site.key] = first_order_mask(site.weight, squares[site.key])
    return _judged(model, sites, masks, calibration, never_above=False)


def _judged(
    model: nn.Module, sites: Sequence[Site], masks: dict[str, torch.Tensor], calibration: Calibration, *, never_above: bool
) -> dict[str, Choice]:
    """Choices from masks (as matrices), with both errors; `never_above` takes magnitude's mask where it does better."""
    errors = _Errors({site.key: site for site in sites}, masks)
    activations(model, [site for site in sites if site.key in masks], calibration, errors)
    found = {}
    for site in sites:
        magnitude = magnitude_mask(site.weight)
        if site.key not in masks:
            found[site.key] = Choice(magnitude, note=NOT_REACHED)
            continue
        whole, own, theirs = (float(value) for value in errors.sums.get(site.key, torch.zeros(3)))
        error, other = (value / whole if whole else 0.0 for value in (own, theirs))
        if never_above and own > theirs:
            note = "magnitude's mask rebuilds the layer better on this calibration set and was taken"
            found[site.key] = Choice(magnitude, error=other, magnitude_error=other, note=note)
        else:
            found[site.key] = Choice(from_matrix(masks[site.key], site.shape), error=error, magnitude_error=other)
    return found


class _Errors:
    """Squared outputs, and squared output errors of a mask and of magnitude's, summed by weight."""

    def __init__(self, sites: dict[str, Site], masks: dict[str, torch.Tensor]) -> None:
        self.parts = {}
        for key, mask in masks.items():
            matrix = as_matrix(sites[key].weight)
            dropped = (matrix, matrix * ~mask, matrix * ~as_matrix(magnitude_mask(sites[key].weight)))
            self.parts[key] = torch.stack(dropped)
        self.sums: dict[str, torch.Tensor] = {}

    def __call__(self, key: str, rows: slice, columns: torch.Tensor) -> None:
        outputs = columns.unsqueeze(0) @ self.parts[key][:, rows].transpose(1, 2)
        squares = outputs.square().sum(dim=(1, 2), dtype=torch.float64)
        self.sums[key] = self.sums[key] + squares if key in self.sums else squares


def _sparsegpt(joint: bool) -> Criterion:
    def criterion(model: nn.Module, sites: Sequence[Site], setting: Setting) -> dict[str, Choice]:
        """Layer by layer in the order of use: each layer sees activations of the layers that were pruned before it."""
        calibration = _calibrated(setting, "sparsegpt")
        by_key = {site.key: site for site in sites}
        uses = order_of_use(model, sites, calibration)
        steps: dict[int, list[str]] = {}
        for key in dict.fromkeys(use.key for use in uses):
            steps.setdefault(next(use.source for use in uses if use.key == key), []).append(key)
        found = {site.key: Choice(magnitude_mask(site.weight), note=NOT_REACHED) for site in sites}
        originals = {site.key: site.weight.clone() for site in sites}
        try:
            for number, keys in enumerate(steps.values()):
                grams = {key: Grams(by_key[key].weight.dtype) for key in keys}
                together = [by_key[key] for key in keys]
                stop = sum(use.key in keys for use in uses)
                activations(model, together, calibration, lambda key, rows, piece, g=grams: g[key](key, rows, piece), stop)  # type: ignore[misc]
                for key in keys:
                    found[key] = _reconstructed(by_key[key], grams[key], joint)
                    with torch.no_grad():
                        by_key[key].weight.copy_(_plain(by_key[key], found[key]))
                setting.progress("masks", number + 1, len(steps), keys[0])
        finally:
            for key, original in originals.items():
                by_key[key].weight.copy_(original)
        return found

    return criterion


def _plain(site: Site, choice: Choice) -> torch.Tensor:
    return choice.weight if choice.weight is not None else site.weight * choice.mask


def _reconstructed(site: Site, grams: Grams, joint: bool) -> Choice:
    """SparseGPT on one layer, or magnitude's mask with its weights where that happens to rebuild the output better."""
    matrix, magnitude = as_matrix(site.weight), as_matrix(magnitude_mask(site.weight))
    mask, weight = magnitude.clone(), matrix * magnitude
    whole = own = theirs = 0.0
    for (start, stop), gram in grams.grams.items():
        _refuse_nonfinite_activations(gram, site)
        rows = slice(start, stop)
        kept, updated = sparsegpt(matrix[rows], gram, joint=joint)
        updated = updated.to(matrix.dtype)
        mask[rows], weight[rows] = kept, updated
        whole += reconstruction_error(matrix[rows], gram)
        own += reconstruction_error(matrix[rows] - updated, gram)
        theirs += reconstruction_error(matrix[rows] * ~magnitude[rows], gram)
    error, other = (value / whole if whole else 0.0 for value in (own, theirs))
    if not own <= theirs:
        note = "magnitude's mask rebuilds the layer better on this calibration set and was taken"
        return Choice(from_matrix(magnitude, site.shape), error=other, magnitude_error=other, note=note)
    return Choice(from_matrix(mask, site.shape), weight=from_matrix(weight, site.shape), error=error, magnitude_error=other)


def _refuse_nonfinite_activations(sums: torch.Tensor, site: Site) -> None:
    if not bool(torch.isfinite(sums).all()):
        raise StageError(
            "activations or gradients of the calibration set are NaN or infinite here",
            where=site.layer,
            hint="look at the calibration batches, or at the layers before",
        )


CRITERIA: dict[str, Criterion] = {
    "magnitude": _magnitude,
    "wanda": _wanda,
    "sparsegpt": _sparsegpt(joint=False),
    "sparsegpt-joint": _sparsegpt(joint=True),
    "first-order": _first_order,
}
