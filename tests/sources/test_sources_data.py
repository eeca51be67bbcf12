from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.sources import ArraySplit, Subset, data_source
from pipeline.sources.stratify import stratified


def every(split):
    return split.batch(np.arange(len(split)))


def test_digits_come_in_three_stratified_splits():
    data = data_source({"digits": True}, None)
    assert [len(split) for split in (data.train, data.select, data.test)] == [900, 247, 650]
    inputs, targets = every(data.test)
    assert inputs["x"].shape == (650, 1, 8, 8) and inputs["x"].dtype == np.float32 and inputs["x"].max() == 1.0
    assert np.bincount(targets["label"]).min() >= 60
    assert set(data.test.slices()["class"]) == set("0123456789")


def test_digits_splits_are_disjoint_and_follow_their_seed():
    def samples(seed):
        data = data_source({"digits": True, "args": {"seed": seed, "scale": 2}}, None)
        return [every(split)[0]["x"] for split in (data.train, data.select, data.test)]

    one, again, other = samples(1), samples(1), samples(2)
    assert one[0].shape[-1] == 16
    assert all(np.array_equal(a, b) for a, b in zip(one, again))
    assert not np.array_equal(one[2], other[2])
    assert sum(map(len, one)) == 1797


@pytest.mark.parametrize("args", [{"select": 0}, {"select": 900, "test": 900}, {"shuffle": True}])
def test_digits_refuse_arguments_that_make_no_sense(args):
    with pytest.raises(InputError, match="select"):
        data_source({"digits": True, "args": args}, None)


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=6, max_size=120),
    shares=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    seed=st.integers(0, 9),
)
def test_stratified_parts_cover_every_sample_once_with_each_class_in_proportion(labels, shares, seed):
    labels = np.asarray(labels)
    sizes = [len(labels) * share // sum(shares) for share in shares]
    sizes[0] += len(labels) - sum(sizes)
    parts = stratified(labels, sizes, seed)
    assert [len(part) for part in parts] == sizes
    assert sorted(np.concatenate(parts)) == list(range(len(labels)))
    for value in np.unique(labels):
        total = (labels == value).sum()
        for part, size in zip(parts, sizes):
            assert abs((labels[part] == value).sum() - total * size / len(labels)) <= 2.5


@pytest.fixture
def npz(tmp_path):
    def write(**changes):
        rng = np.random.default_rng(0)
        arrays = {f"{split}_x": rng.random((6, 3)) for split in ("train", "select", "test")}
        arrays |= {f"{split}_label": np.arange(6, dtype=np.int32) % 2 for split in ("train", "select", "test")}
        arrays |= changes
        np.savez(tmp_path / "d.npz", **{key: value for key, value in arrays.items() if value is not None})
        return {"npz": "d.npz"}, tmp_path

    return write


def test_an_npz_file_gives_inputs_and_heads(npz):
    data = data_source(*npz(train_age=np.ones(6), select_age=np.ones(6), test_age=np.ones(6)))
    inputs, targets = every(data.train)
    assert list(inputs) == ["x", "age"] and inputs["age"].dtype == np.float32
    assert targets["label"].dtype == np.int64


def test_several_heads_have_a_metric_and_classes_each(npz):
    section, base = npz(train_size=np.ones(6, np.float64), select_size=np.ones(6), test_size=np.ones(6))
    data = data_source(section | {"heads": {"label": "accuracy", "size": "mae"}}, base, {"inputs": ["x"]})
    inputs, targets = every(data.test)
    assert list(inputs) == ["x"] and list(data.heads) == ["label", "size"] and targets["size"].dtype == np.float32
    assert set(data.test.slices()) == {"label.class"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_label": None}, "lacks test_label"),
        ({"select_x": None}, "lacks an input of the select split"),
        ({"train_label": np.zeros(5, int)}, "same number of samples"),
        ({"train_x": np.asarray([{}] * 6)}, "object"),
    ],
)
def test_an_npz_file_that_lacks_something_is_refused(npz, changes, message):
    with pytest.raises(InputError, match=message):
        data_source(*npz(**changes))


@pytest.mark.parametrize("content", [b"", b"x" * 50, b"PK\x03\x04broken"])
def test_a_file_that_is_no_npz_is_one_clear_error(tmp_path, content):
    (tmp_path / "d.npz").write_bytes(content)
    with pytest.raises(InputError, match="npz"):
        data_source({"npz": "d.npz"}, tmp_path)


def test_a_single_array_and_a_missing_file_are_named(tmp_path):
    np.save(tmp_path / "d.npy", np.ones(3))
    with pytest.raises(InputError, match="a single array"):
        data_source({"npz": "d.npy"}, tmp_path)
    with pytest.raises(InputError, match="there is no file"):
        data_source({"npz": "none.npz"}, tmp_path)


CODE = """
import numpy as np
from pipeline.sources import ArraySplit
def split(seed, n=6):
    rng = np.random.default_rng(seed)
    return ArraySplit({"x": rng.random((n, 3))}, {"label": np.arange(n) % 2})
def as_tuple(): return split(0), split(1), split(2)
def as_dict(): return {"train": split(0), "select": split(1), "test": split(2)}
def two(): return split(0), split(1)
def same():
    one = split(0)
    return one, split(1), one
def copied(): return split(0), split(1), split(0)
def odd(): return split(0), split(1), object()
def pairs(): return {name: (np.arange(i, i + 12.0).reshape(4, 3), [0, 1, 0, 1]) for i, name in enumerate(("train", "select", "test"))}
def numbers(): return (1, 2), (3, 4), (5, 6)
def axes(name, split): return {"half": ["a", "b"] * (len(split) // 2)}
def short(name, split): return {"half": ["a"]}
"""


@pytest.fixture
def code(tmp_path):
    (tmp_path / "d.py").write_text(CODE)
    return tmp_path


@pytest.mark.parametrize("name", ["as_tuple", "as_dict"])
def test_python_data_may_be_a_tuple_or_a_dict(code, name):
    data = data_source({"python": f"d.py:{name}"}, code)
    assert not np.array_equal(every(data.train)[0]["x"], every(data.test)[0]["x"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two", "must return the splits"),
        ("same", "train and test are the same object"),
        ("copied", "6 samples are in both train and test"),
        ("odd", "the test split has no __len__, batch, slices"),
    ],
)
def test_splits_that_are_missing_or_the_same_are_refused(code, name, message):
    with pytest.raises(InputError, match=message):
        data_source({"python": f"d.py:{name}"}, code)


def test_python_data_may_be_pairs_of_arrays(code):
    data = data_source({"python": "d.py:pairs", "heads": {"side": "accuracy"}}, code, {"inputs": ["image"]})
    inputs, targets = every(data.test)
    assert inputs["image"].shape == (4, 3) and targets["side"].dtype == np.int64
    with pytest.raises(InputError, match="no array of samples"):
        data_source({"python": "d.py:numbers"}, code)


def test_a_head_without_targets_and_inputs_of_other_names_are_refused(code):
    with pytest.raises(InputError, match="no target for the head 'colour'"):
        data_source({"python": "d.py:as_dict", "heads": {"colour": "accuracy"}}, code)
    with pytest.raises(InputError, match=r"write `inputs: \[x\]`"):
        data_source({"python": "d.py:as_dict"}, code, {"inputs": ["image"]})


def test_slices_come_from_a_callable(code):
    data = data_source({"python": "d.py:as_dict", "slices": {"python": "d.py:axes"}}, code)
    assert set(data.test.slices()) == {"class", "half"} and len(data.test.slices()["half"]) == 6
    assert "half" not in data.train.slices()
    with pytest.raises(InputError, match="6 samples"):
        data_source({"python": "d.py:as_dict", "slices": {"python": "d.py:short"}}, code)


def table(folder, *rows, head="split,sample,light,place"):
    (folder / "s.csv").write_text("\n".join([head, *rows]) + "\n")
    return {"python": "d.py:as_dict", "slices": {"csv": "s.csv"}}


ROWS = [f"{split},{i},{'day' if i % 2 else 'night'},p{i}" for split in ("select", "test") for i in range(6)]


def test_slices_come_from_columns_of_a_csv_file(code):
    section = table(code, *reversed(ROWS))
    data = data_source(section, code)
    assert list(data.test.slices()["light"]) == ["night", "day"] * 3
    assert set(data.select.slices()) == {"class", "light", "place"}
    section["slices"]["columns"] = ["place"]
    assert set(data_source(section, code).test.slices()) == {"class", "place"}


@pytest.mark.parametrize(
    ("rows", "head", "message"),
    [
        (ROWS[:-1], "split,sample,light,place", "no row for the sample 5 of the test split"),
        ([*ROWS, ROWS[0]], "split,sample,light,place", "a second row for the sample 0 of select"),
        (["select,0,day"], "split,sample,light,place", "3 values in a table of 4 columns"),
        (ROWS, "part,sample,light,place", "first line"),
        ([], "split,sample", "first line"),
    ],
)
def test_a_table_of_slices_with_holes_is_refused_with_its_line(code, rows, head, message):
    with pytest.raises(InputError, match=message) as caught:
        data_source(table(code, *rows, head=head), code)
    assert "s.csv" in str(caught.value)


def test_an_unknown_column_is_refused(code):
    section = table(code, *ROWS)
    section["slices"]["columns"] = ["lihgt"]
    with pytest.raises(InputError, match="it has light, place"):
        data_source(section, code)


def test_a_subset_is_those_samples_in_that_order():
    split = ArraySplit({"x": np.arange(5.0)}, {"label": np.arange(5)}, {"odd": np.arange(5) % 2})
    part = Subset(split, np.asarray([4, 0, 2]))
    assert len(part) == 3
    assert part.batch(np.asarray([0, 2]))[1]["label"].tolist() == [4, 2]
    assert part.slices()["class"].tolist() == ["4", "0", "2"]


def test_arrays_of_ids_stay_integers_and_others_become_float32():
    split = ArraySplit({"ids": np.arange(3), "x": np.ones((3, 2), np.float16)}, {"label": np.zeros(3)})
    inputs, _ = every(split)
    assert (inputs["ids"].dtype, inputs["x"].dtype) == (np.int64, np.float32)
    assert split.slices() == {}
