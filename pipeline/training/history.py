"""What every epoch gave, as rows and as a CSV file."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pipeline.records.io import write_bytes

FILE = "history.csv"


class EpochRow(msgspec.Struct, frozen=True):
    """One finished epoch."""

    phase: str
    epoch: int
    """From 1."""
    loss: float
    """Mean over the epoch's training samples."""
    score: float
    """Mean over heads on the select split (accuracy, or minus an error); not a number without one."""
    lr: float
    """At the epoch's last step."""
    seconds: float


@dataclass(frozen=True)
class History:
    """The epochs of one phase."""

    phase: str
    path: Path
    """The CSV with the epochs of all phases so far."""
    rows: list[EpochRow] = field(default_factory=list)
    kept_epoch: int = 0
    """The epoch whose weights the model holds; 0 when nothing was trained."""
    resumed_from: int = 0
    """Epochs that an earlier, interrupted call had finished."""


def write_rows(path: Path, phase: str, rows: list[EpochRow]) -> None:
    """Put one phase's rows into the CSV, in one step; rows of other phases stay in front of them."""
    fields = EpochRow.__struct_fields__
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    if path.is_file():
        with path.open(newline="") as file:
            writer.writerows(row for row in list(csv.reader(file))[1:] if row and row[0] != phase)
    writer.writerows([_cell(value) for value in msgspec.structs.astuple(row)] for row in rows)
    write_bytes(path, text.getvalue().encode())


def _cell(value: str | int | float) -> str | int:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
