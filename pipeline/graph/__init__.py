"""2:4 on ONNX files: each weight traced to the operator that reads it, judged, and pruned there; no GPU needed.

The doors below import onnx and numpy only when they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.records.check import CheckReport, ParseReport, Target
    from pipeline.records.prune import PruneReport


def check(path: Path, target: Target) -> CheckReport:
    """Judge every weight of a model where its operator reads it; see `pipeline.graph.checking`."""
    from pipeline.graph.checking import check as run

    return run(path, target)


def prune(path: Path, output: Path, patterns: Sequence[str] = ()) -> PruneReport:
    """Write a copy of a model that is 2:4 by magnitude on the deployed axes; see `pipeline.graph.pruning`."""
    from pipeline.graph.pruning import prune as run

    return run(path, output, patterns)


def preflight(path: Path, typing: str | None = None) -> ParseReport:
    """Let TensorRT's own parser read a model; see `pipeline.graph.parsing`."""
    from pipeline.graph.parsing import preflight as run

    return run(path, typing)


def node_names(path: Path) -> list[str]:
    """Names of all nodes, subgraphs and called functions included; an empty name is made from the node's first output.

    Raises:
        InputError: the file cannot be read or is no ONNX model.
    """
    from pipeline.graph.model import open_model
    from pipeline.graph.trace import names

    return names(open_model(path))
