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
SPOILED = ("nan", "inf")
"""Probes with a bad value in them."""
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
    fixed: Mapping[str, Sequence[int]] | None = None,
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
        fixed: Shapes of inputs that no profile names, since they have no dynamic axis.
        seed: Of the inputs.
    """
    rows = []
    for profile, shapes in enumerate(profiles):
        for kind in KINDS:
            at = {name: list(ranges[kind]) for name, ranges in shapes.items()}
            rest = {name: list(shape) for name, shape in (fixed or {}).items() if name not in at}
            for probe, feeds in probes(types, {**at, **rest}, seed).items():
                mine = session.run(feeds)
                batch = next((shape[0] for shape in at.values() if shape), None)
                for name, oracle in oracles.items():
                    found = _compare(mine, oracle.run(feeds), tolerance, probe=probe, batch=batch, strict_nans=strict_nans)
                    rows.append(EngineParity(engine=engine, against=name, profile=profile, shape=kind, probe=probe, **found))
    return rows


def _compare(mine: Feeds, other: Feeds, tolerance: float, *, probe: str, batch: int | None, strict_nans: bool) -> dict[str, Any]:
    """Figures over all outputs.

    Args:
        mine: The engine's.
        other: The oracle's.
        tolerance: As in `engine_parity`.
        probe: What was fed.
        batch: Length of the batch axis; None where no input has one.
        strict_nans: As in `engine_parity`.
    """
    import numpy as np

    worst, worst_abs, lost, spread, leaked, rows_differ = 0.0, 0.0, 0, 0, 0, 0.0
    shapes, notes = [], []
    for name, raw in other.items():
        theirs, ours = raw.astype(np.float64), mine[name].astype(np.float64)
        if ours.shape != theirs.shape:  # a shape that depends on data, such as NonZero's
            shapes.append(f"{name} is {list(ours.shape)}, the oracle's {list(theirs.shape)}")
            continue
        finite = np.isfinite(theirs)
        scale = max(float(np.abs(theirs[finite]).max(initial=0.0)), 1e-12)
        if raw.dtype.kind in "iub" and tolerance > TOLERANCE["fp32"] and np.abs(ours - theirs).max(initial=0.0) > tolerance * scale:
            notes.append(f"{name}: {int((ours != theirs).sum())} of {ours.size} whole numbers differ, as an index may by rounding")
            continue
        by_row = batch is not None and ours.ndim > 0 and len(ours) == batch
        judged = _judged(ours, by_row=by_row, spoiled=probe in SPOILED and not strict_nans)
        both = judged & finite & np.isfinite(ours)
        largest = float(np.abs(ours[both] - theirs[both]).max(initial=0.0))
        worst, worst_abs = max(worst, largest / scale), max(worst_abs, largest)
        lost += int((~finite & np.isfinite(ours)).sum())
        spread += int((finite & ~np.isfinite(ours)).sum())
        leaked += int((judged & finite & ~np.isfinite(ours)).sum())
        if probe == "rows" and by_row:
            apart = np.abs(ours - ours[:1])
            rows_differ = max(rows_differ, float(apart[np.isfinite(apart)].max(initial=0.0)) / scale)
    # where bad values may be lost, how many values come out may differ with them
    alike = not shapes or (probe in SPOILED and not strict_nans)
    passed = worst <= tolerance and leaked == 0 and rows_differ <= tolerance and not (strict_nans and lost) and alike
    return {
        "max_rel": worst,
        "max_abs": worst_abs,
        "tolerance": tolerance,
        "lost_nonfinite": lost,
        "new_nonfinite": spread,
        "rows_differ": rows_differ,
        "note": "; ".join([*shapes, *notes]),
        "passed": passed,
    }


def _judged(output: np.ndarray, *, by_row: bool, spoiled: bool) -> np.ndarray:
    """Which values of an output must be the oracle's: not those of the sample that a bad value was put into.

    A maximum, a ReLU or a product with zero may drop a NaN in one implementation and keep it in the other; what follows
    from it is finite in both, and not the same.
    """
    import numpy as np

    judged = np.full(output.shape, True)
    if spoiled:
        judged[(0,) if by_row else ...] = False
    return judged


def failures(rows: Sequence[EngineParity]) -> list[str]:
    """One sentence per oracle that an engine does not agree with."""
    found: dict[tuple[str, str], list[EngineParity]] = {}
    for row in rows:
        if not row.passed:
            found.setdefault((row.engine, row.against), []).append(row)
    return [
        f"{engine} does not compute what {against} does: {len(bad)} comparisons fail, by up to {max(row.max_rel for row in bad):.2g} "
        f"of the largest value (first: profile {bad[0].profile}, {bad[0].shape} shape, {bad[0].probe} input"
        f"{'; ' + bad[0].note if bad[0].note else ''})"
        for (engine, against), bad in found.items()
    ]


def tolerance_of(precision: str, *, tf32: bool, on_gpu: bool) -> float:
    """The tolerance for engines of a precision; TF32 rounds FP32 products where it is on."""
    return TOLERANCE["tf32" if precision == "fp32" and tf32 and on_gpu else precision]
