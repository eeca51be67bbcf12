"""What the system refuses to write is said of the output, with what to do next; nothing half-written stays."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pipeline.builders.model_io import copy_whole
from pipeline.errors import ExitCode
from pipeline.paths import REMEDIES, refused
from pipeline.records import io
from pipeline.run.causes import failure_of

ROOT = Path(__file__).resolve().parents[2]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sparsegate(folder: Path, fault: str, *words: str, stdout: str = os.devnull) -> tuple[int, str]:
    """Exit code and what was said, in a process that a fault befalls."""
    with Path(stdout).open("wb") as output:
        driver = [sys.executable, str(ROOT / "tests" / "run" / "faults.py"), fault, *words]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(driver, stdout=output, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_a_pruned_model_that_finds_no_room_is_said_of_the_output(model):
    code, message = sparsegate(model.parent, "file-size=9000", "prune", "model.onnx", "-o", "out/pruned.onnx")
    assert code == ExitCode.STAGE
    assert message.startswith("sparsegate: out/pruned.onnx: cannot write the output: File too large\n  next: raise the limit on file sizes")
    assert "model.onnx" not in message.replace("pruned.onnx", "") and "Traceback" not in message
    assert list((model.parent / "out").iterdir()) == []


def test_an_output_below_a_file_is_said_with_the_next_step(model):
    code, message = sparsegate(model.parent, "none", "prune", "model.onnx", "-o", "model.onnx/pruned.onnx")
    assert code == ExitCode.STAGE
    assert "cannot write the output" in message and "next: choose another folder: a file stands where a folder should be" in message


def test_an_output_that_is_no_regular_file_is_not_replaced(model):
    pipe = model.parent / "pipe"
    os.mkfifo(pipe)
    code, message = sparsegate(model.parent, "none", "prune", "model.onnx", "-o", "pipe")
    assert code == ExitCode.USAGE
    assert "pipe: the output is no regular file" in message
    assert pipe.is_fifo()


def test_a_report_that_finds_no_room_is_one_message(tmp_path):
    log = str(ROOT / "recipes" / "samples" / "trt104_verbose.log")
    code, message = sparsegate(tmp_path, "none", "tactics", log, stdout="/dev/full")
    assert code == ExitCode.STAGE
    assert message == "sparsegate: the command stopped: No space left on device\n  next: free space on the disk (sparsegate runs prune)\n"


def test_of_a_copy_the_file_that_is_written_is_named():
    error = OSError(errno.ENOSPC, "No space left on device", "from.bin", None, "to.bin")
    assert refused(error, "stopped").where == "to.bin"
    assert failure_of("export", error).where == "export: to.bin"


def test_a_copy_of_a_model_that_cannot_be_written_is_no_damaged_model(model):
    target = model.parent / "none" / "copy.onnx"
    with pytest.raises(FileNotFoundError) as caught:
        copy_whole(model, target)
    assert caught.value.filename == str(target)


def test_a_write_that_is_refused_names_its_file_and_leaves_the_old_one(tmp_path):
    file = tmp_path / "record.json"
    file.write_text("old")
    with pytest.raises(OSError) as caught, io.replacing(file):
        raise OSError(*FULL.args)
    assert caught.value.filename == str(file)
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"] and file.read_text() == "old"


@pytest.mark.parametrize("number", REMEDIES)
def test_every_refusal_has_a_remedy_that_fits_its_place(number):
    error = OSError(number, os.strerror(number))
    outside, inside = refused(error, "stopped").hint, failure_of("train", error).hint
    assert outside and inside and "{" not in outside + inside
    assert "--workspace" not in outside and "finished stages" not in outside
    assert ("--workspace" in inside) != ("finished stages are kept" in inside)
