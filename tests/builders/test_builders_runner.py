"""The runner file that goes to the target: its frames, addresses and errors, with a stand-in `tensorrt` and a host-memory CUDA runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.builders.trtexec.remote import RemoteRunner
from pipeline.builders.trtexec.target import Target
from pipeline.errors import StageError

WEIGHT = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
CUDART = """
#include <stdlib.h>
#include <string.h>
int cudaSetDevice(int d) { return d == 0 ? 0 : 101; }
int cudaMalloc(void **p, size_t n) { *p = malloc(n); return *p ? 0 : 2; }
int cudaFree(void *p) { free(p); return 0; }
int cudaMemcpy(void *to, const void *from, size_t n, int kind) { (void)kind; memcpy(to, from, n); return 0; }
int cudaDeviceSynchronize(void) { return 0; }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in `tensorrt`, a CUDA runtime on host memory, and a plan."""
    folder = tmp_path_factory.mktemp("runner")
    (folder / "cudart.c").write_text(CUDART)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libcudart.so", folder / "cudart.c"], check=True)
    shutil.copy(Path(__file__).with_name("fake_tensorrt.py"), folder / "tensorrt.py")
    with (folder / "w.plan").open("wb") as file:
        np.save(file, WEIGHT)
    (folder / "bad.plan").write_bytes(b"no plan")
    return folder


@pytest.fixture
def runner(place, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(place))
    monkeypatch.setenv("SPARSEGATE_CUDART", str(place / "libcudart.so"))
    made = []

    def start(plan: str = "w.plan", prefix: tuple[str, ...] = (), folder: str = "/nowhere", device: int = 0, timeout_s: float = 60):
        made.append(RemoteRunner(Target(prefix, folder), sys.executable, str(place / plan), device, timeout_s))
        return made[-1]

    yield start
    for one in made:
        one.close()


def feed(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(rows).standard_normal((rows, 6)).astype(np.float32)}


def test_batch_after_batch_through_one_process(runner):
    one = runner()
    assert one.tensorrt == "10.3.0"
    for rows in (1, 5, 3, 64):
        feeds = feed(rows)
        np.testing.assert_allclose(one.run(feeds, 0)["y"], np.maximum(feeds["x"] @ WEIGHT, 0), rtol=1e-6)


def test_over_ssh_with_a_hostile_folder(runner, programs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    one = runner(prefix=("ssh", "orin"), folder=str(tmp_path / "a b'c $(id)"))
    assert one.run(feed(2), 0)["y"].shape == (2, 3)


def test_a_bad_batch_is_an_error_and_does_not_end_the_service(runner):
    one = runner()
    with pytest.raises(StageError, match="refuses the shape"):
        one.run(feed(65), 0)
    with pytest.raises(StageError, match="KeyError"):
        one.run({"z": feed(1)["x"]}, 0)
    with pytest.raises(StageError, match="no optimization profile 7"):
        one.run(feed(1), 7)
    assert one.run(feed(2), 0)["y"].shape == (2, 3)


@pytest.mark.parametrize(
    ("plan", "device", "words"), [("bad.plan", 0, "does not load the plan"), ("none.plan", 0, "No such file"), ("w.plan", 3, "error 101")]
)
def test_what_cannot_be_loaded_says_why(runner, plan, device, words):
    with pytest.raises(StageError, match=words):
        runner(plan, device=device)


def test_a_target_without_tensorrt_says_so(runner, place, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "")
    with pytest.raises(StageError, match="ModuleNotFoundError") as caught:
        runner()
    assert "target_python" in caught.value.hint


def test_a_runner_that_dies_is_noticed(runner):
    one = runner()
    one._process.kill()
    one._process.wait()
    with pytest.raises(StageError, match="the runner ended"):
        one.run(feed(1), 0)


def test_the_runner_needs_no_more_than_numpy_and_tensorrt():
    code = Path("pipeline/builders/trtexec/runner.py")
    source = (Path(__file__).resolve().parents[2] / code).read_text()
    imports = {line.split()[1].split(".")[0] for line in source.splitlines() if line.strip().startswith(("import ", "from "))}
    assert imports <= {"__future__", "ctypes", "io", "os", "struct", "sys", "pathlib", "typing", "numpy", "tensorrt"}
