"""Magnitude pruning in the file: every weight 2:4 along the axis that its operator sums over, all other bytes as they were."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import pattern
from pipeline.errors import InputError, StageError
from pipeline.graph.checking import described
from pipeline.graph.constants import FOLLOWED, MOVES, TRT_FOLLOWED
from pipeline.graph.judge import Judgement, Pages, in_memory_order, judge, survey
from pipeline.graph.model import Model, open_external, open_model
from pipeline.graph.moves import Move
from pipeline.graph.operators import OPERATORS
from pipeline.graph.patch import DoesNotFitError, Patcher
from pipeline.graph.require import glob
from pipeline.graph.scopes import node_name
from pipeline.graph.trace import trace
from pipeline.graph.values import Value
from pipeline.graph.zeroing import RefusedError, Target, target
from pipeline.paths import refused
from pipeline.records.prune import Action, PrunedLayer, PruneReport

if TYPE_CHECKING:
    import numpy as np

RELEASE_EVERY = 48
"""Blocks between two returns of memory."""


def prune(path: Path, output: Path, patterns: Sequence[str] = ()) -> PruneReport:
    """Write a copy of a model whose weights are 2:4 by magnitude along each operator's reduction axis.

    A weight that several operators read is pruned for each of them in turn: zeros are only added, so all stay 2:4.

    Args:
        path: The model.
        output: The copy; its external data goes into its folder under the names that the model gives.
        patterns: Globs over node names; empty: all layers.

    Raises:
        InputError: the model cannot be read, the output would overwrite it or foreign data, or a pattern matches no layer.
    """
    source = open_model(path, threshold=1, hashed=True)
    external = open_external(source)
    _may_write(path, output, external)
    try:
        layers = _write(source, output, external, patterns)
    except OSError as error:
        raise refused(error, "cannot write the output", where=output) from None
    written = open_model(output, threshold=1, hashed=True)
    open_external(written)
    return PruneReport(source=described(source), output=described(written), layers=layers)


def _write(source: Model, output: Path, external: list[str], patterns: Sequence[str]) -> list[PrunedLayer]:
    """Copy the files, prune the copies, and give them their names when all is well."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".sparsegate-prune-") as name:
        folder = Path(name)
        for file, place in [(source.path, output.name), *((source.tensors.folder.root / location, location) for location in external)]:
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / place)
        layers = _prune_in_place(open_model(folder / output.name, threshold=1), patterns)
        for place in (*external, output.name):
            (output.parent / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).replace(output.parent / place)
    return layers


def _may_write(path: Path, output: Path, external: list[str]) -> None:
    where = str(output)
    if output.exists() and not output.is_file():  # what stands there would be replaced, a device too
        raise InputError(f"the output is {'a folder' if output.is_dir() else 'no regular file'}", where=where, hint="name a file")
    if output.resolve() == path.resolve():
        raise InputError("the output would overwrite the model", where=where, hint="name another file")
    if external and output.parent.resolve() == path.parent.resolve():
        raise InputError(
            f"the model's external data {external[0]!r} keeps its name, so it would be overwritten",
            where=where,
            hint="name a file in another folder",
        )
    taken = [location for location in external if (output.parent / location).exists()]
    if output.name in external or (taken and not output.exists()):
        raise InputError(
            f"the external data {(taken or [output.name])[0]!r} would overwrite another file",
            where=where,
            hint="name a file in another folder",
        )


@dataclass
class _Layer:
    """One operand on its way."""

    one: Judgement
    action: Action = Action.ALREADY
    why: str = ""
    zeroed: int = 0
    lost: float = 0.0


def _prune_in_place(model: Model, patterns: Sequence[str]) -> list[PrunedLayer]:
    pages = Pages(model.tensors.release)
    judged = [judge(sighting, pages) for sighting in trace(model).sightings]
    chosen = [one for one in judged if not one.invalid and _chosen(one, patterns)]
    for wanted in patterns:
        if not any(_chosen(one, [wanted]) for one in chosen):
            listing = f"sparsegate check {shlex.quote(str(model.path))} lists the layers' names"
            raise InputError(f"no layer matches {wanted!r}", where=str(model.path), hint=listing)
    patcher = Patcher()
    layers = []
    for one in chosen:
        layer = _Layer(one)
        layers.append(layer)
        try:
            _prune_layer(layer, patcher)
        except (RefusedError, DoesNotFitError) as error:
            layer.action, layer.why = Action.REFUSED, str(error)
    patcher.close()
    left = [one for one in judged if not any(one is other for other in chosen)]
    for layer in layers:
        if layer.action is not Action.REFUSED:
            layer.why = _shared(layer.one, left)
    return [_record(layer, model, pages) for layer in layers]


def _chosen(one: Judgement, patterns: Sequence[str]) -> bool:
    call = one.sighting.call
    return not patterns or any(glob(wanted, node_name(call.node), call.scope.path) for wanted in patterns)


def _prune_layer(layer: _Layer, patcher: Patcher) -> None:
    one = layer.one
    if one.two_four:
        return
    if one.facts is None or one.value is None or one.axis is None:
        raise RefusedError(one.trouble or "the weight is not constant")
    if one.facts.groups is None:
        raise RefusedError(f"its reduction dimension is {one.segment or one.value.shape[one.axis]}, no multiple of 4")
    value, order = in_memory_order(one.value)
    axis = order.index(one.axis)
    aim = target(one, value)
    const = one.sighting.const
    weights = const.before if const is not None and const.before is not None else one.value
    weights = weights.moved(Move.transpose(weights.shape, order))
    lost = total = 0.0
    for at, block in enumerate(pattern.blocks(value.shape, axis)):
        size = _magnitude(weights, block)
        drop = surplus(size, axis) & pattern.nonzero(value.read(block))
        total += float(size.sum())
        if drop.any():
            lost += float(size[drop].sum())
            layer.zeroed += int(drop.sum())
            _zero(aim, block, drop, patcher)
        if at % RELEASE_EVERY == RELEASE_EVERY - 1:
            patcher.release()
    layer.lost = lost / total if total else 0.0
    layer.action = Action.PRUNED


def _magnitude(weights: Value, block: pattern.Block) -> np.ndarray:
    """|w| as float64; what is not finite is kept before all else."""
    import numpy as np

    with np.errstate(all="ignore"):
        size = np.abs(weights.read(block).astype(np.float64))
    return np.where(np.isfinite(size), size, np.finfo(np.float64).max / 1e20)


def surplus(size: np.ndarray, axis: int) -> np.ndarray:
    """Which values of every group of 4 along an axis are not among its 2 largest; of equals the first is kept.

    Args:
        size: Magnitudes, the axis a multiple of 4 long.
        axis: Reduction axis.
    """
    import numpy as np

    out = np.zeros(size.shape, dtype=bool)
    cuts = [
        tuple(slice(at, None, pattern.GROUP) if dim == axis else slice(None) for dim in range(size.ndim)) for at in range(pattern.GROUP)
    ]
    for mine, cut in enumerate(cuts):
        ahead = sum(
            (size[other] >= size[cut]).astype(np.uint8) if at < mine else (size[other] > size[cut]).astype(np.uint8)
            for at, other in enumerate(cuts)
            if at != mine
        )
        out[cut] = np.asarray(ahead) >= pattern.KEEP
    return out


def _zero(aim: Target, block: pattern.Block, drop: np.ndarray, patcher: Patcher) -> None:
    import numpy as np

    positions = aim.leaf.positions(block)[drop]
    zero = np.zeros((), dtype=aim.stored.dtype) if aim.zero is None else aim.zero.read(block)[drop].astype(aim.stored.dtype)
    patcher.put(aim.stored, positions, np.broadcast_to(zero, positions.shape))


def _shared(one: Judgement, left: list[Judgement]) -> str:
    """Operators that read the same weight and see its new values too: as data, or left out by the patterns."""
    const, call = one.sighting.const, one.sighting.call
    known = {*OPERATORS, *MOVES, *FOLLOWED, *TRT_FOLLOWED}
    readers = call.scope.readers.get(const.name, []) if const and const.name else []
    others = [f"{node.op_type} {node_name(node)!r}" for node in readers if node.op_type not in known]
    nodes = [other.sighting.call.node for other in left if other.sighting.const and const and other.sighting.const.name == const.name]
    others += [f"{node.op_type} {node_name(node)!r}" for node in nodes]
    return f"also read by {', '.join(others)}" if others else ""


def _record(layer: _Layer, model: Model, pages: Pages) -> PrunedLayer:
    one = layer.one
    call, const = one.sighting.call, one.sighting.const
    facts = one.facts
    if facts is not None and one.value is not None and one.axis is not None and not (const and const.computed):
        facts = survey(one.value, one.axis, one.segment, pages)
        if layer.action is not Action.REFUSED and not facts.two_four:
            raise StageError(
                "the pruned weight is not 2:4", where=f"{model.path}: {node_name(call.node)}", hint="report this model as a bug"
            )
    return PrunedLayer(
        node=node_name(call.node),
        graph=call.scope.path,
        op=call.node.op_type,
        weight=const.name if const else None,
        operand=one.sighting.operand.position,
        shape=list(one.value.shape) if one.value else None,
        axis=one.axis,
        action=layer.action,
        why=layer.why,
        values_zeroed=layer.zeroed,
        magnitude_lost=layer.lost,
        zero_fraction=facts.zeros / facts.size if facts and facts.size else None,
    )
