"""The JSON files that trtexec writes: times, layer times, outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import StageError

if TYPE_CHECKING:
    import numpy as np

NOT_JSON = re.compile(r"(?<=[\s,\[:])(-?)(nan|inf)(?=[\s,\]}])")
"""How C++ prints what JSON has no word for."""
METRICS = {"gpu_compute": ("computeMs",), "host_latency": ("latencyMs",), "enqueue": ("endEnqMs", "startEnqMs")}
"""Metric -> the field, or the two whose difference it is."""


def read_json(file: Path) -> list[Any]:
    """Read a list that trtexec wrote.

    Raises:
        StageError: it is missing or was cut.
    """
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
        found = json.loads(NOT_JSON.sub(lambda match: "NaN" if match[2] == "nan" else f"{match[1]}Infinity", text))
    except (OSError, ValueError) as error:
        raise StageError(f"trtexec left no readable file: {error}", where=str(file), hint="the log says how the run ended") from None
    if not isinstance(found, list):
        raise StageError("not a file that trtexec exports: no list", where=str(file))
    return found


def times(file: Path, count: int) -> dict[str, np.ndarray]:
    """The last `count` inferences of exportTimes, ms (older versions export the warm-up too): float64 [count] per metric.

    Raises:
        StageError: fewer were timed, or fields are missing.
    """
    import numpy as np

    rows = read_json(file)
    if len(rows) < count:
        raise StageError(f"trtexec timed {len(rows)} inferences of {count}", where=str(file))
    try:
        return {
            metric: np.array([row[fields[0]] - (row[fields[1]] if len(fields) > 1 else 0.0) for row in rows[-count:]], dtype=np.float64)
            for metric, fields in METRICS.items()
        }
    except (KeyError, TypeError) as error:
        raise StageError(f"not trtexec's times: {error}", where=str(file)) from None


def layer_times(file: Path) -> dict[str, float]:
    """Mean ms per engine layer of exportProfile; a name that occurs twice is summed.

    Raises:
        StageError: not such a file.
    """
    found: dict[str, float] = {}
    try:
        for row in read_json(file)[1:]:
            found[row["name"]] = found.get(row["name"], 0.0) + float(row["averageMs"])
    except (KeyError, TypeError, ValueError) as error:
        raise StageError(f"not trtexec's layer times: {error}", where=str(file)) from None
    return found


def outputs(file: Path) -> dict[str, np.ndarray]:
    """Outputs by name of exportOutput, as float32 in their shapes; trtexec prints about 6 digits.

    Raises:
        StageError: not such a file, or values that do not fill the shape.
    """
    import numpy as np

    found = {}
    for row in read_json(file):
        try:
            shape = tuple(int(extent) for extent in str(row["dimensions"]).split("x"))
            found[str(row["name"])] = np.array(row["values"], dtype=np.float32).reshape(shape)
        except (KeyError, TypeError, ValueError) as error:
            raise StageError(f"not trtexec's outputs: {error}", where=str(file)) from None
    return found
