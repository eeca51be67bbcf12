from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.errors import InputError
from pipeline.sources import digests
from pipeline.sources.reads import folder_digest


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m.py").write_text("import helper\nfrom deep.part import x\ndef build(): ...\n")
    (tmp_path / "helper.py").write_text("import other\n")
    (tmp_path / "other.py").write_text("import helper\n")
    (tmp_path / "unused.py").write_text("")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "part.py").write_text("x = 1\n")
    (tmp_path / "images" / "cat").mkdir(parents=True)
    (tmp_path / "images" / "cat" / "1.png").write_bytes(b"1")
    return tmp_path


def test_a_python_file_brings_the_modules_beside_it_that_it_imports(folder):
    assert set(digests({"python": "m.py:build"}, folder)) == {"m.py", "helper.py", "other.py", "deep/part.py"}


@pytest.mark.parametrize(
    ("section", "file"),
    [
        ({"python": "m.py:build"}, "m.py"),
        ({"python": "m.py:build"}, "other.py"),
        ({"python": "m.py:build"}, "deep/part.py"),
        ({"npz": "unused.py"}, "unused.py"),
        ({"checkpoint": "unused.py"}, "unused.py"),
        ({"imagefolder": "images"}, "images/cat/1.png"),
        ({"imagefolder": "images"}, "images/cat/2.png"),
        ({"digits": True, "slices": {"csv": "unused.py"}}, "unused.py"),
        ({"digits": True, "slices": {"python": "m.py:s"}}, "helper.py"),
        ({"digits": True, "files": ["images"]}, "images/cat/1.png"),
    ],
)
def test_a_changed_file_changes_the_digests(folder, section, file):
    before = digests(section, folder)
    assert digests(section, folder) == before
    (folder / file).write_text("y = 2\n")
    assert digests(section, folder) != before


def test_a_file_that_is_not_read_changes_nothing(folder):
    before = digests({"python": "m.py:build"}, folder)
    (folder / "unused.py").write_text("y = 2\n")
    assert digests({"python": "m.py:build"}, folder) == before


def test_renaming_and_hiding_images_changes_the_folder_and_hidden_files_do_not(folder):
    before = folder_digest(folder / "images")
    (folder / "images" / ".DS_Store").write_bytes(b"x")
    assert folder_digest(folder / "images") == before
    (folder / "images" / "cat" / "1.png").rename(folder / "images" / "cat" / "3.png")
    assert folder_digest(folder / "images") != before


@pytest.mark.parametrize("location", ["m.onnx.data", "weights/all of it.bin", "w" * 150])
def test_weights_that_an_onnx_file_keeps_elsewhere_are_read_too(folder, location):
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    graph = helper.make_graph([], "g", [], [], [numpy_helper.from_array(np.ones(4, np.float32), "w")])
    (folder / "weights").mkdir()
    onnx.save(helper.make_model(graph), folder / "m.onnx", save_as_external_data=True, location=location, size_threshold=0)
    before = digests({"onnx": "m.onnx"}, folder)
    assert set(before) == {"m.onnx", location}
    (folder / location).write_bytes(b"other weights...")
    assert digests({"onnx": "m.onnx"}, folder)[location] != before[location]


def test_an_onnx_file_that_points_out_of_its_folder_reads_nothing_there(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "m.onnx").write_bytes(b"\n\x08location\x12\x0c../unused.py\n\x08location\x12\x85")
    assert set(digests({"onnx": "sub/m.onnx"}, folder)) == {"sub/m.onnx"}


@pytest.mark.parametrize("section", [{"npz": "no.npz"}, {"python": "no.py:f"}, {"imagefolder": "no"}, {"files": ["no"]}])
def test_what_is_not_there_is_an_input_error(folder, section):
    with pytest.raises(InputError, match="no"):
        digests(section, folder)


def test_digests_are_light(folder):
    code = (
        "import sys; from pathlib import Path; from pipeline.sources import digests;"
        "digests({'python': 'm.py:build', 'imagefolder': 'images'}, Path(sys.argv[1])); digests({'digits': True}, Path(sys.argv[1]));"
        "print([name for name in ('torch', 'numpy', 'sklearn', 'timm', 'pydantic', 'onnx') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
