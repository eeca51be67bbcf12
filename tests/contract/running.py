"""Runs inside the bindings of one version: a session over ducks of the true ICudaEngine and IExecutionContext, on host memory.

The enums, Dims, and the base classes of the output allocator and of the profiler are the true ones. What the context does with an
allocator is what NvInferRuntime.h says of it: ask for memory while it runs, then tell the shape.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorrt as trt
from ducks import duck

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "builders"))
from fake_tensorrt import HostCuda

from pipeline.builders.options import read_options
from pipeline.builders.tensorrt.buffers import _allocator_class
from pipeline.builders.tensorrt.session import TrtSession

DOCUMENTED = {
    name: [word.strip() for word in words.split(",")]
    for name, words in re.findall(r"def (\w+)\((.*?)\):", trt.IOutputAllocator.__doc__)
    if not name.startswith("_")
}
"""What TensorRT calls on an allocator: its methods are virtual and not in the class; its documentation has their names and parameters."""
ASYNC = "reallocate_output_async" in DOCUMENTED


class Engine(duck(trt.ICudaEngine)):  # type: ignore[misc]
    """y = the positive values of x: a shape that depends on data; z = 2 x."""

    def __init__(self) -> None:
        self.num_io_tensors = 3

    def get_tensor_name(self, index: int) -> str:
        return ("x", "y", "z")[index]

    def get_tensor_mode(self, name: str) -> Any:
        return trt.TensorIOMode.INPUT if name == "x" else trt.TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        return trt.DataType.FLOAT

    def get_tensor_location(self, name: str) -> Any:
        return trt.TensorLocation.DEVICE

    def get_tensor_shape(self, name: str) -> Any:
        return trt.Dims((-1,) if name == "y" else (-1, 4))

    def create_execution_context(self) -> Any:
        return Context()


class Context(duck(trt.IExecutionContext)):  # type: ignore[misc]
    def __init__(self) -> None:
        self._shape: tuple[int, ...] = ()
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, Any] = {}
        self.profiler = None

    def set_input_shape(self, name: str, shape: Any) -> bool:
        self._shape = tuple(shape)
        return True

    def infer_shapes(self) -> list[str]:
        return []

    def get_tensor_shape(self, name: str) -> Any:
        return trt.Dims((-1,) if name == "y" else self._shape)

    def set_tensor_address(self, name: str, address: int) -> bool:
        self._addresses[name] = address
        return True

    def set_output_allocator(self, name: str, allocator: Any) -> bool:
        assert isinstance(allocator, trt.IOutputAllocator)
        self._allocators[name] = allocator
        return True

    def execute_async_v3(self, stream: int) -> bool:
        x = _floats(self._addresses["x"], int(np.prod(self._shape))).copy()
        kept = x[x > 0]
        allocator = self._allocators["y"]
        ask = allocator.reallocate_output_async if ASYNC else allocator.reallocate_output
        address = ask("y", 0, kept.nbytes, 256, *([stream] if ASYNC else []))
        assert address  # null means that there is no memory, even where nothing is to be stored
        allocator.notify_shape("y", trt.Dims(kept.shape))
        _floats(address, kept.size)[:] = kept
        _floats(self._addresses["z"], x.size)[:] = 2 * x
        if self.profiler is not None:
            assert isinstance(self.profiler, trt.IProfiler)
            self.profiler.report_layer_time("nonzero", 0.5)
        return True


def _floats(address: int, count: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_float * count).from_address(address), dtype=np.float32) if count else np.empty(0, np.float32)


def answers() -> dict[str, Any]:
    """What the session makes of it."""
    session = TrtSession(trt, Engine(), HostCuda(), read_options({}), [])
    runs = []
    for positive in (3, 12, 0):
        x = -np.ones((3, 4), np.float32)
        x.ravel()[:positive] = np.arange(1, positive + 1)
        found = session.run({"x": x})
        runs.append({"y": found["y"].tolist(), "z": bool((found["z"] == 2 * x).all())})
    sampler = session.sampler({"x": np.ones((3, 4), np.float32)})
    times = sampler.block(4)
    ours = {name: list(inspect.signature(method).parameters) for name, method in vars(_allocator_class(trt)).items() if name[0] != "_"}
    return {
        "runs": runs,
        "timed": {name: len(values) for name, values in times.items()},
        "settings": sampler.settings,
        "profile": session.profile({"x": np.ones((3, 4), np.float32)}, 2),
        "allocator": ours,
        "documented": DOCUMENTED,
    }
