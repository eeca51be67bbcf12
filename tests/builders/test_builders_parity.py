"""Engine parity tells rounding from a wrong engine, and a NaN that spreads from one that is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builder_cases import batch_profile, mlp, request

from pipeline.builders import backend
from pipeline.builders.parity import TOLERANCE, engine_parity, failures, probes, tolerance_of

TYPES = {"x": "float32"}
PROFILES = [batch_profile(), batch_profile(low=2, opt=3, high=5)]
WEIGHT = np.random.default_rng(3).standard_normal((32, 4)).astype(np.float32)


class Function:
    """A session that computes a function."""

    def __init__(self, function: Any) -> None:
        self.run = lambda feeds: {"y": function(feeds["x"])}


TRUE = Function(lambda x: x @ WEIGHT)


def rows(function: Any, **options: Any) -> list[Any]:
    return engine_parity(
        "sparse", Function(function), {"twin": TRUE}, types=TYPES, profiles=PROFILES, tolerance=TOLERANCE["fp32"], **options
    )


def test_an_equal_engine_passes_at_every_shape_of_every_profile():
    found = rows(lambda x: x @ WEIGHT)
    assert len(found) == 2 * 3 * 4
    assert all(row.passed for row in found)
    assert failures(found) == []
    assert {(row.profile, row.shape, row.probe) for row in found} == {
        (profile, shape, probe) for profile in (0, 1) for shape in ("min", "opt", "max") for probe in ("random", "nan", "inf", "rows")
    }


def test_rounding_passes_and_a_changed_weight_does_not():
    assert all(row.passed for row in rows(lambda x: (x @ WEIGHT) * np.float32(1 + 1e-6)))
    wrong = WEIGHT.copy()
    wrong[0, 0] += 1
    found = [row for row in rows(lambda x: x @ wrong) if row.probe == "random"]
    assert not any(row.passed for row in found)
    assert "sparse does not compute what twin does" in failures(found)[0]


def test_a_nan_that_spreads_to_other_samples_is_an_error():
    spreading = lambda x: x @ WEIGHT + (0 if np.isfinite(x).all() else np.nan)  # noqa: E731
    found = [row for row in rows(spreading) if row.probe in ("nan", "inf") and row.shape != "min"]
    assert all(row.new_nonfinite > 0 and not row.passed for row in found)


def test_a_lost_nan_is_a_fact_unless_nans_must_propagate():
    losing = lambda x: np.nan_to_num(x, posinf=0.0) @ WEIGHT  # noqa: E731 (what skipping products with zeros does)
    found = [row for row in rows(losing) if row.probe == "nan"]
    assert all(row.lost_nonfinite > 0 and row.passed for row in found)
    assert not any(row.passed for row in rows(losing, strict_nans=True) if row.probe == "nan")


def test_what_follows_from_a_bad_value_may_differ_within_its_own_sample():
    """A ReLU that keeps a NaN and one that drops it, then a sum: finite in one, not in the other, or finite in both and not the same."""
    keeps = lambda x: np.where(x > 0, x, np.where(np.isnan(x), x, 0)) @ WEIGHT  # noqa: E731
    drops = lambda x: np.where(x > 0, x, 0) @ WEIGHT  # noqa: E731
    to_one = lambda x: np.where(np.isnan(x), 1, np.where(x > 0, x, 0)) @ WEIGHT  # noqa: E731
    for ours, theirs in ((keeps, drops), (drops, keeps), (to_one, drops)):
        found = engine_parity("s", Function(ours), {"o": Function(theirs)}, types=TYPES, profiles=PROFILES, tolerance=1e-4)
        assert all(row.passed for row in found)
        assert {row.probe for row in found if row.lost_nonfinite or row.new_nonfinite} <= {"nan"}
    strict = engine_parity("s", Function(drops), {"o": Function(keeps)}, types=TYPES, profiles=PROFILES, tolerance=1e-4, strict_nans=True)
    assert not any(row.passed for row in strict if row.probe == "nan")


def test_an_index_may_turn_by_rounding_and_is_told():
    def found(tolerance: float) -> dict[str, Any]:
        label, other = (Function(lambda x, c=c: (x @ WEIGHT).argmax(1) if len(x) < 2 else np.full(len(x), c)) for c in (1, 2))
        made = engine_parity("s", label, {"o": other}, types=TYPES, profiles=PROFILES[:1], tolerance=tolerance)
        return {row.probe: row for row in made if row.shape == "opt"}

    assert found(TOLERANCE["fp16"])["random"].passed
    assert found(TOLERANCE["fp16"])["random"].note == "y: 8 of 8 whole numbers differ, as an index may by rounding"
    assert not found(TOLERANCE["fp32"])["random"].passed


def test_a_result_that_depends_on_the_samples_place_is_an_error():
    found = [row for row in rows(lambda x: x @ WEIGHT * np.linspace(1, 2, len(x))[:, None]) if row.probe == "rows" and row.shape != "min"]
    assert all(row.rows_differ > 0.1 and not row.passed for row in found)


def test_the_figures_say_by_how_much_and_what_was_allowed():
    off = [row for row in rows(lambda x: x @ WEIGHT + np.float32(0.5)) if row.probe == "random"]
    assert all(row.max_abs == pytest.approx(0.5, rel=1e-4) and row.max_rel < row.max_abs and row.tolerance == 1e-4 for row in off)


def test_outputs_of_another_shape_are_told_and_not_compared():
    """As an output whose shape depends on data can be."""
    shorter = [row for row in rows(lambda x: (x @ WEIGHT)[:, :3]) if row.probe == "random"]
    assert not any(row.passed for row in shorter)
    assert "y is [1, 3], the oracle's [1, 4]" in shorter[0].note
    assert "y is [1, 3]" in failures(shorter)[0]


def test_how_many_values_come_out_may_change_with_a_lost_nan():
    def compared(**options: Any) -> dict[str, Any]:
        losing = Function(lambda x: np.flatnonzero(np.isfinite(x)).astype(np.int64))
        true = Function(lambda x: np.arange(x.size))
        found = engine_parity("s", losing, {"o": true}, types=TYPES, profiles=PROFILES[:1], tolerance=1e-4, **options)
        return {row.probe: row for row in found if row.shape == "opt"}

    assert all(row.passed for row in compared().values())
    assert compared()["nan"].note
    assert not compared(strict_nans=True)["nan"].passed


def test_only_outputs_that_follow_the_batch_are_held_against_their_rows():
    other = Function(lambda x: np.arange(len(x) + 1, dtype=np.float32))
    found = engine_parity("s", other, {"o": other}, types=TYPES, profiles=PROFILES, tolerance=1e-4)
    assert all(row.passed and row.rows_differ == 0 for row in found)
    total = Function(lambda x: np.float32(x.sum()))  # no axis at all
    assert all(row.passed for row in engine_parity("s", total, {"o": total}, types=TYPES, profiles=PROFILES, tolerance=1))


def test_an_input_without_a_dynamic_axis_is_fed_too():
    shapes = []

    class Two:
        def run(self, feeds):
            shapes.append({name: list(array.shape) for name, array in feeds.items()})
            return {"y": feeds["x"] * feeds["mask"][:1, :1]}

    types = {"x": "float32", "mask": "float32"}
    assert engine_parity("s", Two(), {"o": Two()}, types=types, profiles=PROFILES[:1], tolerance=1, fixed={"mask": [3, 5]})
    assert all(fed["mask"] == [3, 5] for fed in shapes)
    assert {fed["x"][0] for fed in shapes} == {1, 8, 16}


@pytest.mark.parametrize("kind", ["int64", "int32", "bool", "float16", "bfloat16"])
def test_inputs_have_the_engines_types(kind):
    made = probes({"x": kind}, {"x": [2, 3]}, seed=0)
    assert {str(feeds["x"].dtype) for feeds in made.values()} == {kind}
    assert all(feeds["x"].shape == (2, 3) for feeds in made.values())


def test_tolerances_follow_the_type():
    assert tolerance_of("fp16", tf32=True, on_gpu=True) > tolerance_of("fp32", tf32=True, on_gpu=True)
    assert (
        tolerance_of("fp32", tf32=True, on_gpu=True)
        > tolerance_of("fp32", tf32=False, on_gpu=True)
        == tolerance_of("fp32", tf32=True, on_gpu=False)
    )


@pytest.mark.soak
def test_a_stand_in_engine_against_onnx_runtime(standin, tmp_path):
    model = mlp(tmp_path / "m.onnx")
    trtexec, ort = backend("trtexec", standin()), backend("onnxruntime", {})
    engine = trtexec.build(request(model), tmp_path / "a")
    session, oracle = trtexec.load(engine, tmp_path / "a"), ort.load(ort.build(request(model), tmp_path / "b"), tmp_path / "b")
    found = engine_parity(
        "sparse", session, {"onnxruntime": oracle}, types=engine.inputs, profiles=[batch_profile(low=2, opt=2, high=2)], tolerance=1e-4
    )
    session.close()
    assert all(row.passed for row in found)
