"""Scores per sample, predictions that survive a file, and inputs that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pipeline.errors import InputError
from pipeline.quality import Predictions, digest, nonfinite, score, summarise
from pipeline.quality.metrics import NOT_FINITE

LOGITS = hnp.arrays(np.float32, st.tuples(st.integers(1, 20), st.integers(1, 12)), elements=st.floats(-5, 5, width=32))


@given(LOGITS, st.randoms())
@settings(max_examples=50)
def test_accuracy_is_arg_max_and_top5_holds_it(outputs, random):
    n, classes = outputs.shape
    targets = np.array([random.randrange(classes) for _ in range(n)])
    right = score({"h": "accuracy"}, {"h": outputs}, {"h": targets})["h"]
    assert np.array_equal(right, outputs.argmax(axis=1) == targets)
    top = score({"h": "top5"}, {"h": outputs}, {"h": targets})["h"]
    order = np.argsort(-outputs.astype(np.float64), axis=1, kind="stable")[:, :5]
    assert np.array_equal(top, (order == targets[:, None]).any(axis=1))
    assert (top >= right).all()


def test_errors_are_means_over_a_sample():
    outputs, targets = np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 2.0]])
    assert score({"h": "mae"}, {"h": outputs}, {"h": targets})["h"].tolist() == [1.5, 1.0]
    assert score({"h": "mse"}, {"h": outputs}, {"h": targets})["h"].tolist() == [2.5, 2.0]


def test_binary_is_the_sign():
    found = score({"h": "binary"}, {"h": np.array([[2.0], [-1.0], [0.5]])}, {"h": np.array([1, 1, 0])})
    assert found["h"].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_not_finite_are_wrong(bad):
    outputs = np.array([[0.0, bad], [0.0, 1.0]])
    labels = np.array([1, 1])
    assert score({"h": "accuracy"}, {"h": outputs}, {"h": labels})["h"].tolist() == [0.0, 1.0]
    assert score({"h": "mae"}, {"h": outputs}, {"h": np.zeros((2, 2))})["h"][0] >= NOT_FINITE / 4


@pytest.mark.parametrize(
    ("metric", "outputs", "targets", "words"),
    [
        ("colour", np.ones((2, 2)), np.ones(2), "no metric is called 'colour'"),
        ("accuracy", np.ones((2, 2)), np.array([0, 2]), "cannot score"),
        ("accuracy", np.ones((2, 2)), np.array([0, -1]), "cannot score"),
        ("accuracy", np.ones((2, 2)), np.array([0.0, 1.0]), "cannot score"),
        ("accuracy", np.ones((3, 2)), np.array([0, 1]), "cannot score"),
        ("mae", np.ones((2, 2)), np.ones((2, 3)), "cannot score"),
    ],
)
def test_what_does_not_fit_is_refused(metric, outputs, targets, words):
    with pytest.raises(InputError, match=words):
        score({"h": metric}, {"h": outputs}, {"h": targets})


def test_a_missing_head_is_named():
    with pytest.raises(InputError, match="outputs have no head 'b'"):
        score({"b": "mae"}, {"a": np.ones(2)}, {"b": np.ones(2)})


def made(n=30):
    rng = np.random.default_rng(0)
    outputs = {"label": rng.standard_normal((n, 4)), "depth": rng.standard_normal((n, 2, 3))}
    targets = {"label": rng.integers(0, 4, n), "depth": rng.standard_normal((n, 2, 3))}
    slices = {"class": targets["label"], "size": np.where(np.arange(n) % 2 == 0, "small", "large")}
    return Predictions.of({"label": "accuracy", "depth": "mae"}, outputs, targets, slices), targets


def test_predictions_survive_a_file(tmp_path):
    one, _ = made()
    one.save(tmp_path / "deep" / "p.npz")
    again = Predictions.load(tmp_path / "deep" / "p.npz")
    assert again.heads == one.heads
    for part in ("scores", "slices", "answers"):
        left, right = getattr(again, part), getattr(one, part)
        assert set(left) == set(right)
        assert all(np.array_equal(left[key], right[key]) for key in left)


def test_slice_labels_may_be_numbers(tmp_path):
    one, targets = made()
    numbered = Predictions(one.heads, one.scores, {"class": targets["label"]}, one.answers)
    numbered.save(tmp_path / "p.npz")
    assert np.array_equal(Predictions.load(tmp_path / "p.npz").slices["class"], targets["label"])


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"not a zip"])
def test_a_damaged_predictions_file_is_refused(tmp_path, data):
    (tmp_path / "p.npz").write_bytes(data)
    with pytest.raises(InputError, match=r"p\.npz"):
        Predictions.load(tmp_path / "p.npz")


def test_columns_that_do_not_fit_together_are_refused(tmp_path):
    one, _ = made()
    short = Predictions(one.heads, {**one.scores, "depth": one.scores["depth"][:5]}, one.slices, one.answers)
    short.save(tmp_path / "p.npz")
    with pytest.raises(InputError, match="do not fit together"):
        Predictions.load(tmp_path / "p.npz")


def test_the_summary_is_the_mean_of_the_scores_and_of_each_slice():
    one, targets = made()
    found = summarise(one, split="test", backend="onnxruntime")
    label, depth = found.heads
    assert label.value == pytest.approx(one.scores["label"].mean())
    assert (label.higher_is_better, depth.higher_is_better) == (True, False)
    by_name = {(s.axis, s.name): s for s in label.slices}
    for name in range(4):
        inside = targets["label"] == name
        assert by_name["class", str(name)].n == inside.sum()
        assert by_name["class", str(name)].value == pytest.approx(one.scores["label"][inside].mean())
    assert sum(s.n for s in label.slices if s.axis == "size") == 30


def test_equal_outputs_have_equal_digests():
    values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    changed = values.copy()
    changed[2, 1, 0] += 1e-6
    changed[2, 1, 0] = np.nextafter(values[2, 1, 0], np.float32(100))
    assert (digest(values) == digest(changed)).tolist() == [True, True, False, True]
    assert digest(np.array([[0.1, 0.9], [0.8, 0.2]])).tolist() == [1, 0]


def test_samples_with_nan_or_infinite_outputs_are_counted():
    outputs = np.zeros((5, 2, 3), np.float16)
    outputs[1, 0, 0], outputs[1, 1, 2], outputs[4, 1, 1] = np.nan, np.nan, -np.inf
    assert nonfinite(outputs) == 2
    one, _ = made()
    label, depth = summarise(one, split="test", backend="onnxruntime", nonfinite={"depth": 2}).heads
    assert (label.nonfinite, depth.nonfinite) == (0, 2)
