"""Files of named arrays: whole, or refused in one sentence that names the file."""

import random
import zipfile

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.records import npz

DTYPES = {"arm": np.int16, "ms": np.float64, "label": np.str_}
ARRAYS = {"arm": np.arange(500, dtype=np.int16), "ms": np.random.default_rng(0).random(500), "label": np.array(["day", "night"] * 250)}


def read(path):
    return npz.read_columns(path, list[str], lambda _: DTYPES, what="samples")


@pytest.fixture
def path(tmp_path):
    npz.write_columns(tmp_path / "deep" / "s.npz", ["a", "b"], ARRAYS)
    return tmp_path / "deep" / "s.npz"


def test_columns_survive_a_file(path):
    head, found = read(path)
    assert head == ["a", "b"]
    assert list(found) == list(ARRAYS)
    assert all(np.array_equal(found[name], ARRAYS[name]) and found[name].dtype == ARRAYS[name].dtype for name in ARRAYS)


def test_the_file_is_one_that_numpy_itself_writes(path, tmp_path):
    with (tmp_path / "numpy.npz").open("wb") as file:
        np.savez_compressed(file, head=np.frombuffer(b'["a","b"]', np.uint8), **ARRAYS)
    assert path.read_bytes() == (tmp_path / "numpy.npz").read_bytes()


def test_a_failed_write_leaves_the_file_that_was_there(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="allow_pickle"):
        npz.write_columns(path, [], {"arm": ARRAYS["arm"], "objects": np.array([{}], object)})
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ms": None}, "no column 'ms'"),
        ({"arm": ARRAYS["arm"].astype(np.float64)}, "'arm' holds float64, not int16"),
        ({"label": ARRAYS["arm"]}, "'label' holds int16, not str_"),
        ({"ms": ARRAYS["ms"][:-1]}, "do not fit together"),
        ({name: array.reshape(2, 250) for name, array in ARRAYS.items()}, "do not fit together"),
    ],
)
def test_columns_other_than_those_asked_for_are_refused(tmp_path, changed, words):
    npz.write_columns(tmp_path / "s.npz", ["a"], {name: array for name, array in {**ARRAYS, **changed}.items() if array is not None})
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path / "s.npz")
    assert caught.value.where == str(tmp_path / "s.npz")
    assert "samples are damaged" in caught.value.what


def test_a_head_of_another_kind_is_refused(tmp_path):
    npz.write_columns(tmp_path / "s.npz", {"arms": 2}, ARRAYS)
    with pytest.raises(InputError, match="not a readable samples file"):
        read(tmp_path / "s.npz")


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(path, kept):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(InputError, match="not a readable samples file"):
        read(path)
    with pytest.raises(InputError, match=r"not a readable \.npz file.*\n.*next: as numpy does"):
        npz.arrays(path, hint="as numpy does")


def test_an_absent_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a readable samples file"):
        read(tmp_path / "none.npz")


def test_what_unpacks_to_more_than_the_limit_is_refused_before_it_is_unpacked(path, monkeypatch):
    def unpacked(*_):
        raise AssertionError("a member was opened")

    monkeypatch.setattr(npz, "MAX_BYTES", 1000)
    monkeypatch.setattr(zipfile.ZipFile, "open", unpacked)
    with pytest.raises(InputError, match="would unpack to more than"):
        read(path)


@pytest.mark.parametrize("shape", ["(1099511627776,)", "(4611686018427387904,)", "(-1,)", "(500,", "(4,)"])
def test_a_column_whose_header_lies_is_refused(path, shape):
    """The archive's own sizes and checksums are true here: only the array's header lies."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    told = b"{'descr': '<f8', 'fortran_order': False, 'shape': (500,), }"
    lie = told.replace(b"(500,)", shape.encode())
    members["ms.npy"] = members["ms.npy"].replace(told.ljust(len(lie)), lie.ljust(len(told)))
    assert lie in members["ms.npy"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="not a readable samples file"):
        read(path)


def test_a_pickle_is_refused_unread(path):
    objects = np.array([print] * 500, object)
    with path.open("wb") as file:
        np.savez_compressed(file, head=np.frombuffer(b"[]", np.uint8), **{**ARRAYS, "ms": objects})
    with pytest.raises(InputError, match="allow_pickle=False"):
        read(path)


@pytest.mark.parametrize("reader", [lambda path: read(path)[1], lambda path: npz.arrays(path, hint="as numpy does")])
def test_a_changed_byte_anywhere_gives_the_same_columns_or_one_error(path, reader):
    """Times and comments within the archive are not part of the columns; all else is under a checksum, but for the names."""
    whole, draw = path.read_bytes(), random.Random(0)
    for _ in range(600):
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(data))
        try:
            found = reader(path)
        except InputError as error:
            assert error.where == str(path)
        else:
            assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS if name in found)


def test_a_single_array_is_no_file_of_named_arrays(tmp_path):
    np.save(tmp_path / "one.npy", ARRAYS["ms"])
    with pytest.raises(InputError, match="a single array"):
        npz.arrays(tmp_path / "one.npy", hint="as numpy does")
