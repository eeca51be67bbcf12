"""2:4 sparsity on torch tensors: masks by published criteria, one mechanism that holds them, proof, channel permutation.

The doors load on first use, so that importing this package imports neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.sparsity.digests import mask_digest as mask_digest
    from pipeline.sparsity.digests import weights_digest as weights_digest
    from pipeline.sparsity.frozen import Frozen as Frozen
    from pipeline.sparsity.frozen import freeze as freeze
    from pipeline.sparsity.holder import Holder as Holder
    from pipeline.sparsity.holder import hold as hold
    from pipeline.sparsity.permutation.permute import permute as permute
    from pipeline.sparsity.proposal import Proposal as Proposal
    from pipeline.sparsity.proposal import propose as propose
    from pipeline.sparsity.selected import Returned as Returned
    from pipeline.sparsity.selected import only_where_selected as only_where_selected
    from pipeline.sparsity.two_four import is_two_four as is_two_four

_DOORS = {
    "Frozen": "frozen",
    "Holder": "holder",
    "Proposal": "proposal",
    "freeze": "frozen",
    "hold": "holder",
    "is_two_four": "two_four",
    "mask_digest": "digests",
    "Returned": "selected",
    "only_where_selected": "selected",
    "permute": "permutation.permute",
    "propose": "proposal",
    "weights_digest": "digests",
}

__all__ = [
    "Frozen",
    "Holder",
    "Proposal",
    "Returned",
    "freeze",
    "hold",
    "is_two_four",
    "mask_digest",
    "only_where_selected",
    "permute",
    "propose",
    "weights_digest",
]


def __getattr__(name: str) -> Any:
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_DOORS[name]}"), name)
