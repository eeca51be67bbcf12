"""Horizontal siblings: operators that share an input, which TensorRT fuses side by side, so that they go together."""

from __future__ import annotations

from collections import defaultdict

from pipeline.graph.judge import Judgement


def siblings(judged: list[Judgement]) -> list[list[Judgement]]:
    """For every operand the others, of the same family and on the same side, that are multiplied with the same data."""
    groups: dict[tuple[str, bool, str], list[Judgement]] = defaultdict(list)
    keys = []
    for one in judged:
        sighting = one.sighting
        family = "matmul" if sighting.operator.family == "gemm" else sighting.operator.family
        keys.append((family, sighting.operand.left, sighting.data))
        groups[keys[-1]].append(one)
    return [[other for other in groups[key] if other is not one] for key, one in zip(keys, judged, strict=True)]
