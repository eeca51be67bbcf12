"""Every weight matrix of a model: which modules read it, its kind, its reduction axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn.utils import parametrize

from pipeline.records.layers import WeightedLayer

# kind -> parameters that are weight matrices, in the layout [out, reduction, *kernel]
MULTIPLYING: tuple[tuple[type[nn.Module], tuple[str, ...]], ...] = (
    (nn.Linear, ("weight",)),
    (nn.Conv1d, ("weight",)),
    (nn.Conv2d, ("weight",)),
    (nn.Conv3d, ("weight",)),
    (nn.MultiheadAttention, ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")),
)


@dataclass(kw_only=True)
class Site:
    """One weight matrix (a shared one once) and the modules that own it."""

    key: str
    """The weight's first name in the state dict."""
    layer: str
    """The layer's name: the module's, with the projection for attention (`attn.in_proj`)."""
    module: nn.Module
    parameter: nn.Parameter | None
    """None where a parametrization computes the weight."""
    shape: tuple[int, ...]
    kind: str
    groups: int = 1
    supported: bool
    """The layout is known to be [out, reduction, *kernel] and the module multiplies by it."""
    aliases: list[str] = field(default_factory=list)
    """Further state-dict names of the same parameter."""
    modules: list[str] = field(default_factory=list)
    tied_kinds: list[str] = field(default_factory=list)
    """Kinds of the other modules that own the same parameter."""

    @property
    def keys(self) -> list[str]:
        """All names of the weight in the state dict."""
        return [self.key, *self.aliases]

    @property
    def weight(self) -> torch.Tensor:
        """The weight's values, detached."""
        if self.parameter is None:
            raise ValueError(f"{self.key} is computed by a parametrization")
        return self.parameter.detach()

    def record(self) -> WeightedLayer:
        """The layer's identity in records."""
        return WeightedLayer(
            id=self.layer, modules=list(self.modules), weight=self.key, shape=list(self.shape), kind=self.kind, groups=self.groups
        )


def find_sites(model: nn.Module) -> list[Site]:
    """All weight matrices in the order of the model's modules.

    Listed are the parameters of layers that multiply (table `MULTIPLYING`), and every other parameter with more than one
    dimension larger than 1 (embeddings, recurrent weights, transposed convolutions, bare matrices): the latter are not
    supported, yet must not be left out silently. Vectors (biases, norm scales, layer scales) are no weight matrices.
    """
    sites: dict[int, Site] = {}
    found: list[Site] = []
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, parametrize.ParametrizationList) or _inside_parametrization(name):
            continue
        for site in _sites_of(name, module):
            known = sites.get(id(site.parameter)) if site.parameter is not None else None
            if known is None:
                found.append(site)
                if site.parameter is not None:
                    sites[id(site.parameter)] = site
            elif site.key not in known.keys:
                known.aliases.append(site.key)
                known.modules.append(name)
                if type(module) is not type(known.module):
                    known.tied_kinds.append(site.kind)
    return found


def _inside_parametrization(name: str) -> bool:
    return "parametrizations" in name.split(".")


def _sites_of(name: str, module: nn.Module) -> Iterator[Site]:
    wanted = next((names for kind, names in MULTIPLYING if isinstance(module, kind)), None)
    computed = list(module.parametrizations) if parametrize.is_parametrized(module) else []  # type: ignore[arg-type]
    for leaf, parameter in module.named_parameters(recurse=False):
        supported = wanted is not None and leaf in wanted
        if supported or (parameter.ndim > 1 and sum(size > 1 for size in parameter.shape) > 1):
            yield _site(name, module, leaf, parameter, tuple(parameter.shape), supported)
    for leaf in computed:
        if wanted is not None and leaf in wanted:
            yield _site(name, module, leaf, None, tuple(getattr(module, leaf).shape), True)


def _site(name: str, module: nn.Module, leaf: str, parameter: nn.Parameter | None, shape: tuple[int, ...], supported: bool) -> Site:
    prefix = f"{name}." if name else ""
    return Site(
        key=prefix + leaf,
        layer=name if leaf == "weight" and name else prefix + leaf.removesuffix("_weight"),
        module=module,
        parameter=parameter,
        shape=shape,
        kind=_kind(module),
        groups=int(getattr(module, "groups", 1)) if supported else 1,
        supported=supported,
        modules=[name],
    )


def _kind(module: nn.Module) -> str:
    # subclasses such as NonDynamicallyQuantizableLinear or timm's own convolutions are what they multiply like
    return next((kind.__name__ for kind, _ in MULTIPLYING if isinstance(module, kind)), type(module).__name__)
