"""The masks of a run: by which criterion, on what data, what each layer keeps, and what a new channel order brought."""

from __future__ import annotations

from pipeline.records.checkpoint import Checkpoint, LayerDecision
from pipeline.records.permutation import PermutedLayer
from pipeline.report.table import columns
from pipeline.report.words import number

MASKS = columns("layer", "criterion", "proposed by", ">kept magnitude", ">output error", ">magnitude's", "input channels")


def summary(checkpoint: Checkpoint) -> str:
    """One sentence on criterion, calibration and permutation; empty where no layer is masked."""
    criteria = dict.fromkeys(one.criterion for one in checkpoint.layers if one.masked and one.criterion)
    if not criteria:
        return ""
    parts = [f"masks by {', '.join(criteria)}"]
    if checkpoint.calibration:
        parts.append(f"calibrated on {number(checkpoint.calibration.samples)} samples ({checkpoint.calibration.digest[:12]})")
    found = checkpoint.permutation
    if found and found.difference is not None:
        parts.append(f"channels permuted: outputs differ by {number(found.difference)} of the largest, in {found.precision}")
    elif found:
        parts.append("no channels permuted")
    return "; ".join(parts)


def beyond_magnitude(checkpoint: Checkpoint) -> bool:
    """Whether there is more to say than that masks go by magnitude."""
    return checkpoint.calibration is not None or checkpoint.permutation is not None


def mask_rows(checkpoint: Checkpoint) -> list[list[str]]:
    """One row per masked layer, in the model's order."""
    moved = {one.layer.id: one for one in (checkpoint.permutation.layers if checkpoint.permutation else ())}
    return [_row(one, moved.get(one.layer.id)) for one in checkpoint.layers if one.masked]


def _row(one: LayerDecision, moved: PermutedLayer | None) -> list[str]:
    return [
        one.layer.id,
        one.criterion or "-",
        one.proposed_by or "-",
        _percent(one.kept_magnitude),
        _percent(one.output_error),
        _percent(one.magnitude_error),
        f"{moved.outcome} ({moved.rule}): {moved.text}" if moved else "-",
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else number(share * 100, "%")
