"""Layers that share an input and that TensorRT fuses side by side: masked together or not at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from torch import fx, nn

from pipeline.sparsity.calibration import Calibration, Use, order_of_use
from pipeline.sparsity.sites import Site


def sibling_sets(model: nn.Module, sites: Sequence[Site], calibration: Calibration | None) -> list[list[str]]:
    """Sets of weight keys, two or more each, that read the same tensor in the same way.

    With calibration batches the model is run once and every use is seen; without, torch.fx traces it, and a model that
    cannot be traced has no known siblings.
    """
    watched = [site for site in sites if site.supported and site.parameter is not None and site.groups == 1]
    uses = order_of_use(model, watched, calibration) if calibration is not None else _traced(model, watched)
    together: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for use in uses:
        mine = together[(use.source, *use.how)]
        if use.key not in mine:
            mine.append(use.key)
    return [keys for keys in together.values() if len(keys) > 1]


def _traced(model: nn.Module, sites: Sequence[Site]) -> Iterable[Use]:
    try:
        graph = fx.Tracer().trace(model)
    except Exception:  # noqa: BLE001 (tracing runs the model's own code)
        return
    keys = {id(site.module): site.key for site in sites if site.kind != "MultiheadAttention"}
    numbers: dict[fx.Node, int] = {}
    for node in graph.nodes:
        if node.op != "call_module" or not node.args or not isinstance(node.args[0], fx.Node):
            continue
        module = model.get_submodule(str(node.target))
        if id(module) in keys:
            source = numbers.setdefault(node.args[0], len(numbers))
            yield Use(keys[id(module)], source, _how(module))


def _how(module: nn.Module) -> tuple[object, ...]:
    if isinstance(module, nn.modules.conv._ConvNd):
        return (module.kernel_size, str(module.stride), str(module.padding), str(module.dilation))
    return ()


def dense_with_siblings(sets: Sequence[Sequence[str]], dense: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Layers that stay dense because a sibling does: rule and text by key, `dense` itself left out."""
    added: dict[str, tuple[str, str]] = {}
    grown = True
    while grown:
        grown = False
        for keys in sets:
            cause = next((key for key in keys if key in dense or key in added), None)
            if cause is None:
                continue
            for key in keys:
                if key not in dense and key not in added:
                    added[key] = ("SG312", f"shares its input with {cause}, which stays dense")
                    grown = True
    return added
