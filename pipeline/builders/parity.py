"""Does an engine compute what its ONNX file says? Against its twin (same weights, no sparsity flag) and against ONNX Runtime.

Inputs are normal noise of one seed, the same with a NaN or an infinity in its first row, and one row repeated: the first tells whether
the numbers agree, the others whether a bad value spreads between samples, is lost, or whether a sample's result depends on its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.builders.base import Session
from pipeline.builders.profiles import KINDS, ProfileShapes
from pipeline.builders.tensorrt.dtypes import numpy_dtype
from pipeline.records.measurement import EngineParity

if TYPE_CHECKING:
    import numpy as np

Feeds = dict[str, "np.ndarray"]
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "fp16": 2e-2, "bf16": 1e-1}
"""Largest difference, as a share of the oracle's largest value: rounding of the type, with room for another order of summation."""
LARGEST_INDEX = 8
"""Whole-number inputs are drawn from 0..7: they may be indices."""


def probes(types: Mapping[str, str], shapes: Mapping[str, Sequence[int]], seed: int) -> dict[str, Feeds]:
    """Feeds by probe: `random`, `nan`, `inf`, `rows`.

    Args:
        types: numpy's name of the type by input name.
        shapes: By input name; the first axis is the batch.
        seed: Of the noise.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    base = {name: _noise(rng, types[name], shape) for name, shape in shapes.items()}
    found = {"random": base}
    for probe, value in (("nan", np.nan), ("inf", np.inf)):
        found[probe] = {name: _spoiled(array, value) for name, array in base.items()}
    found["rows"] = {name: np.repeat(array[:1], len(array), axis=0) for name, array in base.items()}
    return found


def _noise(rng: np.random.Generator, kind: str, shape: Sequence[int]) -> np.ndarray:
    if kind.startswith(("float", "bfloat")):
        return rng.standard_normal(tuple(shape)).astype(numpy_dtype(kind))
    return rng.integers(0, 2 if kind == "bool" else LARGEST_INDEX, tuple(shape)).astype(numpy_dtype(kind))


def _spoiled(array: np.ndarray, value: float) -> np.ndarray:
    """The array with one value of its first row replaced; whole numbers stay as they are."""
    if array.dtype.kind in "iub":
        return array
    spoiled = array.copy()
    spoiled[(0,) * array.ndim] = value
    return spoiled


def engine_parity(
    engine: str,
    session: Session,
    oracles: Mapping[str, Session],
    *,
    types: Mapping[str, str],
    profiles: Sequence[ProfileShapes],
    tolerance: float,
    strict_nans: bool = False,
    seed: int = 0,
) -> list[EngineParity]:
    """Compare one engine with each oracle at min, opt and max of each profile.

    Args:
        engine: Its arm's name.
        session: It, loaded.
        oracles: What it is compared with, by name.
        types: numpy's name of the type by input name.
        profiles: Its optimization profiles.
        tolerance: Largest difference, as a share of the oracle's largest finite value.
        strict_nans: Whether it was built so that NaNs propagate: a lost one is then an error, else a fact.
        seed: Of the inputs.
    """
    rows = []
    for profile, shapes in enumerate(profiles):
        for kind in KINDS:
            at = {name: list(ranges[kind]) for name, ranges in shapes.items()}
            for probe, feeds in probes(types, at, seed).items():
                mine = session.run(feeds)
                for name, oracle in oracles.items():
                    found = _compare(mine, oracle.run(feeds), tolerance, probe, strict_nans)
                    rows.append(EngineParity(engine=engine, against=name, profile=profile, shape=kind, probe=probe, **found))
    return rows


def _compare(mine: Feeds, other: Feeds, tolerance: float, probe: str, strict_nans: bool) -> dict[str, Any]:
    """Figures over all outputs."""
    import numpy as np

    worst, lost, spread, rows_differ = 0.0, 0, 0, 0.0
    for name, raw in other.items():
        theirs, ours = raw.astype(np.float64), mine[name].astype(np.float64)
        finite = np.isfinite(theirs)
        scale = max(float(np.abs(theirs[finite]).max(initial=0.0)), 1e-12)
        both = finite & np.isfinite(ours)
        worst = max(worst, float(np.abs(ours[both] - theirs[both]).max(initial=0.0)) / scale)
        lost += int((~finite & np.isfinite(ours)).sum())
        spread += int((finite & ~np.isfinite(ours)).sum())
        if probe == "rows":
            rows_differ = max(rows_differ, float(np.abs(ours - ours[:1]).max(initial=0.0)) / scale)
    passed = worst <= tolerance and spread == 0 and rows_differ <= tolerance and not (strict_nans and lost)
    return {"max_rel": worst, "lost_nonfinite": lost, "new_nonfinite": spread, "rows_differ": rows_differ, "passed": passed}


def failures(rows: Sequence[EngineParity]) -> list[str]:
    """One sentence per oracle that an engine does not agree with."""
    found: dict[tuple[str, str], list[EngineParity]] = {}
    for row in rows:
        if not row.passed:
            found.setdefault((row.engine, row.against), []).append(row)
    return [
        f"{engine} does not compute what {against} does: {len(bad)} comparisons fail, by up to {max(row.max_rel for row in bad):.2g} "
        f"of the largest value (first: profile {bad[0].profile}, {bad[0].shape} shape, {bad[0].probe} input)"
        for (engine, against), bad in found.items()
    ]


def tolerance_of(precision: str, *, tf32: bool, on_gpu: bool) -> float:
    """The tolerance for engines of a precision; TF32 rounds FP32 products where it is on."""
    return TOLERANCE["tf32" if precision == "fp32" and tf32 and on_gpu else precision]
