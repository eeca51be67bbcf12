"""`check` against Polygraphy's `inspect sparsity` at 100 MB, and against reading and hashing 1 G weights of external data.

Polygraphy takes over a minute for 100 MB of float16, so by default it judges a smaller weight, and its time for 100 MB is
that of an empty run plus its time per weight (it is linear: one loop in Python over all groups). `--full` runs it on the same
100 MB. Every figure of ours is measured at its full size. Files are read once before, so that all are in the page cache.

Times are CPU seconds (user and system, all threads), so that other work on the machine does not decide; the wall time of
`check` is shorter where a second core is free, since it hashes beside the pattern pass. Of the pattern pass the best of 15 counts.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from harness import expect
from onnx import TensorProto, helper, numpy_helper

from pipeline import pattern

BYTES = 100_000_000
SAMPLE = 2_000_000
"""Weights of the model that Polygraphy judges without --full."""
GIANT = 1_000_000_000


def weight(rows: int, columns: int, dtype: str) -> np.ndarray:
    """2:4 along axis 0, nothing special among the values."""
    array = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    array[1::4] = array[3::4] = 0
    return array.astype(dtype)


def save(path: Path, array: np.ndarray) -> None:
    """A model of one matrix product."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", array.shape[0]])],
        [helper.make_tensor_value_info("y", kind, ["n", array.shape[1]])],
        [numpy_helper.from_array(array, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of a call in this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def command(*words: object) -> float:
    """CPU seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(word) for word in words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def polygraphy(path: Path) -> float:
    """Seconds of `polygraphy inspect sparsity`."""
    return command(Path(sys.executable).with_name("polygraphy"), "inspect", "sparsity", path)


def sparsegate(path: Path) -> float:
    """Seconds of `sparsegate check`."""
    return command(sys.executable, "-m", "pipeline", "check", path, "--format", "json")


def against_polygraphy(folder: Path, dtype: str, full: bool) -> None:
    """The pattern pass at least 800 times, the whole command at least 60 times as fast."""
    size = BYTES // np.dtype(dtype).itemsize
    rows = 4096
    big, small, tiny = (folder / f"{name}.onnx" for name in ("big", "small", "tiny"))
    array = weight(rows, size // rows, dtype)
    save(big, array)
    save(small, array if full else array[:, : SAMPLE // rows].copy())
    save(tiny, array[:8, :4].copy())
    ours, theirs, idle = [], [], []
    for _ in range(3):
        ours.append(sparsegate(big))
        idle.append(polygraphy(tiny))
    theirs = [polygraphy(small) for _ in range(1 if full else 3)]
    judged = array.size if full else rows * (SAMPLE // rows)
    per_weight = (min(theirs) - min(idle)) / judged
    whole = min(idle) + per_weight * array.size
    passes = [cpu(lambda: pattern.survey(array, 0)) for _ in range(15)]
    how = "measured" if full else f"from {judged} weights"
    pass_ratio = per_weight * array.size / min(passes)
    text = f"{pass_ratio:.0f} times ({min(passes):.3f} s; Polygraphy {per_weight * array.size:.1f} s, {how})"
    expect(f"pattern pass, 100 MB {dtype}", pass_ratio >= 800, text, ">= 800 times")
    ratio = whole / statistics.median(ours)
    text = f"{ratio:.0f} times ({statistics.median(ours):.2f} s; Polygraphy {whole:.1f} s, {how})"
    expect(f"whole command, 100 MB {dtype}", ratio >= 60, text, ">= 60 times")


def convolution() -> None:
    """At least 0.5 G weights/s along the channel axis of a 3x3 convolution."""
    for dtype in ("float32", "float16"):
        array = weight(2048 * 9, 1024, dtype).reshape(2048, 1024, 3, 3)
        rate = array.size / min(cpu(lambda array=array: pattern.survey(array, 1)) for _ in range(15)) / 1e9
        expect(f"3x3 convolution, {dtype}, channel axis", rate >= 0.5, f"{rate:.2f} G weights/s", ">= 0.5 G weights/s")


def giant(folder: Path) -> None:
    """1 G float16 weights of external data within twice the time of reading and hashing the file."""
    rows, columns = 40_000, GIANT // 40_000
    data = folder / "w.bin"
    part = weight(1000, columns, "float16").tobytes()
    with data.open("wb") as file:
        for _ in range(rows // 1000):
            file.write(part)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["n", rows])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["n", columns])],
        [TensorProto(name="w", data_type=TensorProto.FLOAT16, dims=[rows, columns], data_location=TensorProto.EXTERNAL)],
    )
    graph.initializer[0].external_data.add(key="location", value=data.name)
    path = folder / "giant.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString())

    def hashed() -> None:
        with data.open("rb") as file:
            hashlib.file_digest(file, "sha256")

    hashed()
    pairs = [(sparsegate(path), cpu(hashed)) for _ in range(3)]
    ratio = statistics.median(ours / read for ours, read in pairs)
    ours, read = (statistics.median(column) for column in zip(*pairs, strict=True))
    text = f"{ratio:.2f} times ({ours:.2f} s; hashing {read:.2f} s)"
    expect("1 G weights of external data, whole command", ratio <= 2, text, "<= 2 times reading and hashing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="let Polygraphy judge 100 MB (minutes)")
    parser.add_argument("--no-giant", action="store_true", help="leave out the 2 GB file")
    arguments = parser.parse_args()
    convolution()
    with tempfile.TemporaryDirectory() as name:
        for dtype in ("float32", "float16"):
            against_polygraphy(Path(name), dtype, arguments.full)
        if not arguments.no_giant:
            giant(Path(name))


if __name__ == "__main__":
    main()
