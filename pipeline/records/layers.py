"""Layer identity: which torch modules, which weight and which ONNX nodes are one weighted layer (many to many)."""

from __future__ import annotations

from pipeline.records.io import Part


class WeightedLayer(Part, frozen=True, kw_only=True):
    """One weight matrix and everything that is known to read it.

    A shared weight has several modules; one module may export to several nodes; an `onnx:` model has no modules.
    """

    id: str
    """The first module's qualified name, or the first ONNX node's name."""
    modules: list[str] = []
    weight: str | None = None
    """Key in the state dict."""
    shape: list[int] = []
    """As torch stores it: Linear [out, in], ConvNd [out, in/groups, *kernel]."""
    kind: str
    """torch class name, or ONNX op type."""
    groups: int = 1
    initializer: str | None = None
    onnx_nodes: list[str] = []
