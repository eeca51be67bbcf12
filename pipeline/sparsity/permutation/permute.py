"""The door: find better channel orders for a dense model and move its weights, its function proved unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from pipeline.errors import StageError
from pipeline.progress import Progress, silent
from pipeline.records.permutation import PermutationReport, PermutedLayer
from pipeline.sparsity.calibration import evaluating
from pipeline.sparsity.candidates import why_dense
from pipeline.sparsity.choose import kept_share, magnitude_mask, refuse_nonfinite
from pipeline.sparsity.inputs import as_call, first_sample, outputs_of
from pipeline.sparsity.permutation import ops_math, ops_shape
from pipeline.sparsity.permutation.follow import Follower, follow
from pipeline.sparsity.permutation.problems import Problem, problems, sample
from pipeline.sparsity.permutation.rewrite import complete, move
from pipeline.sparsity.permutation.search import Found, kept_magnitude, search
from pipeline.sparsity.permutation.spaces import Solution, solve
from pipeline.sparsity.permutation.torch_search import search_torch
from pipeline.sparsity.sites import Site, find_sites

RULES = {**ops_shape.RULES, **ops_math.RULES}
MOST_DIFFERENCE = {"float64": 1e-10, "float32": 1e-4, "other": 1e-2}
"""Relative difference of outputs up to which the function counts as unchanged, by the type they were computed in."""


def permute(
    model: nn.Module,
    example_inputs: Any,
    *,
    seconds: float,
    seed: int = 0,
    include: Sequence[str] = ("*",),
    exclude: Sequence[str] = (),
    progress: Progress = silent,
) -> PermutationReport:
    """Reorder channels of a dense model, in place, so that magnitude 2:4 masks keep more of its weights.

    Args:
        model: Dense, finite weights; its function stays the same.
        example_inputs: A tensor, a tuple of positional or a mapping of keyword inputs; one sample is used.
        seconds: Time for the searches together, on one CPU core, or on the GPU that the model is on; capturing the
            graph and compilation come on top.
        seed: Of the searches.
        include: Globs over layers that are going to be masked: only these count.
        exclude: Globs over layers that are not.
        progress: Told of each search.

    Returns:
        Every layer, permuted or refused, with the reason. Where the outputs differ after the move, all is put back and the
        report says so.
    """
    sites = find_sites(model)
    dense = why_dense(sites, include=include, exclude=exclude)
    for site in sites:
        if site.key not in dense:
            refuse_nonfinite(site.weight, site.layer)
    args, kwargs = first_sample(*as_call(example_inputs))
    try:
        followed = follow(model, args, kwargs, RULES)
    except StageError as error:
        reasons = {site.key: ("SG327", error.what) for site in sites}
        return PermutationReport(
            layers=[_refused(site, *dense.get(site.key, reasons[site.key])) for site in sites], seconds=seconds, seed=seed
        )
    solution = solve(followed.channels)
    targets = {site.key for site in sites if site.key not in dense}
    todo, why = problems(solution, followed.uses, targets)
    before = {site.key: _kept(site) for site in sites if site.key in targets}
    moves, done = _search(model, todo, seconds, seed, progress)
    source = complete(solution, moves)
    difference, precision = _move_and_prove(model, solution, source, args, kwargs)
    broken = difference is not None and not difference <= MOST_DIFFERENCE.get(precision or "", MOST_DIFFERENCE["other"])
    reasons = dense | _unread(followed, why, targets, todo)
    layers = [_layer(site, reasons, todo, moves, before, broken) for site in sites]
    return PermutationReport(
        layers=layers, seconds=seconds, seed=seed, spaces=len(todo), difference=difference, precision=precision, complete=done
    )


def _search(model: nn.Module, todo: list[Problem], seconds: float, seed: int, progress: Progress) -> tuple[dict[int, int], bool]:
    """Moves of channels (whose content comes to their place), and whether every search did its nominal work."""
    weights = dict(model.named_parameters())
    sizes = [
        len(problem.channels) * min(sum(weights[name].numel() // weights[name].shape[1] for name in problem.columns), 4096)
        for problem in todo
    ]
    moves: dict[int, int] = {}
    done, device = True, next(model.parameters()).device
    for index, problem in enumerate(todo):
        matrix = problem.matrix(weights)
        share = seconds * sizes[index] / sum(sizes)
        if device.type == "cuda":
            found = search_torch(sample(matrix, seed), seconds=share, seed=seed, device=str(device))
        else:
            found = search(sample(matrix, seed), seconds=share, seed=seed)
        done = done and found.complete
        if _better(found, matrix):
            channels = np.array(problem.channels)
            moves |= {int(to): int(come) for to, come in zip(channels, channels[found.order], strict=True) if to != come}
        progress("permute", index + 1, len(todo), f"{found.regained:.0%} of the lost magnitude regained")
    return moves, done


def _better(found: Found, matrix: np.ndarray) -> bool:
    data = np.abs(matrix).T
    return kept_magnitude(data[found.order]) > kept_magnitude(data)


def _move_and_prove(
    model: nn.Module, solution: Solution, source: np.ndarray, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[float | None, str | None]:
    """Move the weights; where the outputs differ, put them back. Returns the difference and the type it was computed in."""
    if np.array_equal(source, np.arange(source.size)):
        return None, None
    with evaluating(model):
        old, precision = outputs_of(model, args, kwargs)
        move(model, solution, source)
        new, _ = outputs_of(model, args, kwargs)
    scale = max((float(one.abs().max()) for one in old), default=0.0) or 1.0
    difference = max((float((one - other).abs().max()) for one, other in zip(old, new, strict=True)), default=0.0) / scale
    if not difference <= MOST_DIFFERENCE.get(precision, MOST_DIFFERENCE["other"]):
        back = np.empty_like(source)
        back[source] = np.arange(source.size)
        move(model, solution, back)
    return difference, precision


def _kept(site: Site) -> float:
    return kept_share(site.weight, magnitude_mask(site.weight))


def _unread(followed: Follower, why: Mapping[str, tuple[str, str]], targets: set[str], todo: list[Problem]) -> dict[str, tuple[str, str]]:
    """Rule and text of every target that no problem reads."""
    used = {use.weight for use in followed.uses}
    read = {name for problem in todo for name in problem.columns}
    reasons = dict(why)
    for key in targets - read:
        if key not in used:
            reasons[key] = ("SG324", "the example input does not run it, or its weight is computed before use")
        reasons.setdefault(key, ("SG323", "its input channels are not followed"))
    return reasons


def _layer(
    site: Site,
    reasons: Mapping[str, tuple[str, str]],
    todo: list[Problem],
    moves: Mapping[int, int],
    before: Mapping[str, float],
    broken: bool,
) -> PermutedLayer:
    if site.key in reasons:
        return _refused(site, *reasons[site.key], kept=before.get(site.key))
    if broken:
        return _refused(site, "SG328", "the model's outputs differed after the move; the order was put back", kept=before[site.key])
    mine = [problem for problem in todo if site.key in problem.columns]
    moved = sum(channel in moves for problem in mine for channel in problem.channels)
    movable = sum(len(problem.channels) for problem in mine)
    after = _kept(site)
    if not moved:
        text = f"{movable} of {site.shape[1]} input channels could move; no better order found"
        return _report(site, "unchanged", "SG322", text, 0, before[site.key], after)
    text = f"{moved} of {site.shape[1]} input channels moved; magnitude 2:4 keeps {before[site.key]:.2%} -> {after:.2%}"
    return _report(site, "permuted", "SG321", text, moved, before[site.key], after)


def _refused(site: Site, rule: str, text: str, kept: float | None = None) -> PermutedLayer:
    return _report(site, "refused", rule, text, 0, kept, kept)


def _report(site: Site, outcome: Any, rule: str, text: str, moved: int, before: float | None, after: float | None) -> PermutedLayer:
    return PermutedLayer(layer=site.record(), outcome=outcome, rule=rule, text=text, moved=moved, kept_before=before, kept_after=after)
