"""A stand-in for the module `tensorrt` and for CUDA, on the host's memory: y = relu(x @ w), where the engine's plan is w as .npy.

It proves the order and the addresses of what a session does, and nothing about TensorRT. The runner's test imports it as `tensorrt`.
"""

from __future__ import annotations

import ctypes
import io
from types import SimpleNamespace
from typing import Any

import numpy as np

__version__ = "10.3.0"


class _Member:
    def __init__(self, name: str) -> None:
        self.name = name


class TensorIOMode:
    INPUT, OUTPUT = _Member("INPUT"), _Member("OUTPUT")


TensorIOMode.__members__ = {"INPUT": TensorIOMode.INPUT, "OUTPUT": TensorIOMode.OUTPUT}


class TensorLocation:
    DEVICE, HOST = _Member("DEVICE"), _Member("HOST")


class Logger:
    ERROR = 1

    def __init__(self, severity: int) -> None: ...


class IProfiler:
    def __init__(self) -> None: ...


class IOutputAllocator:
    def __init__(self) -> None: ...


def view(address: int, count: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_float * count).from_address(address), dtype=np.float32)


class Engine:
    """Inputs x [-1, k]; output y [-1, n], or [-1] of the positive values where `data_dependent`."""

    num_io_tensors = 2

    def __init__(self, weight: np.ndarray, *, data_dependent: bool = False) -> None:
        self.weight = weight
        self.data_dependent = data_dependent
        self.calls: list[str] = []

    def get_tensor_name(self, index: int) -> str:
        return ("x", "y")[index]

    def get_tensor_mode(self, name: str) -> Any:
        return TensorIOMode.INPUT if name == "x" else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> Any:
        return _Member("FLOAT")

    def get_tensor_location(self, name: str) -> Any:
        return TensorLocation.DEVICE

    def get_tensor_shape(self, name: str) -> list[int]:
        return [-1, self.weight.shape[0]] if name == "x" else [-1] if self.data_dependent else [-1, self.weight.shape[1]]

    def create_execution_context(self) -> Context:
        return Context(self)


class Context:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.shape: tuple[int, ...] | None = None
        self.addresses: dict[str, int] = {}
        self.allocator: Any = None
        self.profiler: Any = None
        self.profile = 0

    def set_optimization_profile_async(self, index: int, stream: int) -> bool:
        self.engine.calls.append(f"profile {index}")
        self.profile, self.shape, self.addresses = index, None, {}
        return index < 2

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        assert name == "x"
        self.shape = shape
        return shape[0] <= 64

    def infer_shapes(self) -> list[str]:
        return [] if self.shape else ["x"]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        assert self.shape is not None, "shapes are asked before the input's is set"
        return (-1,) if self.engine.data_dependent else (self.shape[0], self.engine.weight.shape[1])

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.addresses[name] = address
        return True

    def set_output_allocator(self, name: str, allocator: Any) -> bool:
        self.allocator = allocator
        return True

    def execute_async_v3(self, stream: int) -> bool:
        assert self.shape is not None, "run before the shape is set"
        self.engine.calls.append("run")
        x = view(self.addresses["x"], int(np.prod(self.shape))).reshape(self.shape)
        y = np.maximum(x @ self.engine.weight, 0)
        if self.engine.data_dependent:
            kept = y[y > 0]
            address = self.allocator.reallocate_output("y", 0, kept.nbytes, 256)
            self.allocator.notify_shape("y", kept.shape)
            view(address, kept.size)[:] = kept
        else:
            view(self.addresses["y"], y.size)[:] = y.ravel()
        if self.profiler is not None:
            for layer, ms in (("matmul", 0.3), ("relu", 0.1)):
                self.profiler.report_layer_time(layer, ms)
        return True


class Runtime:
    def __init__(self, logger: Any) -> None: ...

    def deserialize_cuda_engine(self, data: bytes) -> Engine | None:
        try:
            return Engine(np.load(io.BytesIO(data)))
        except ValueError:
            return None


class HostCuda:
    """The session's view of CUDA, on the host: `device` memory is a buffer of its own, so that a missing copy shows."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.held: dict[int, Any] = {}
        self.closed = False

    def stream(self) -> Any:
        return SimpleNamespace(handle=1, synchronize=lambda: self.log.append("sync"))

    def event(self, *, spin: bool) -> Any:
        return _Event(self, spin)

    def device_bytes(self, count: int) -> Any:
        buffer = ctypes.create_string_buffer(max(1, count))
        address = ctypes.addressof(buffer)
        self.held[address] = buffer
        return address

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def to_device(self, device: int, host: np.ndarray, stream: Any) -> None:
        self.log.append("to device")
        ctypes.memmove(device, host.ctypes.data, host.nbytes)

    def to_host(self, host: np.ndarray, device: int, stream: Any) -> None:
        self.log.append("to host")
        ctypes.memmove(host.ctypes.data, device, host.nbytes)

    def graph(self, stream: Any, enqueue: Any) -> Any:
        self.log.append("capture")

        def launch() -> None:
            self.log.append("launch")
            enqueue()

        return launch

    def close(self) -> None:
        self.closed = True


class _Event:
    def __init__(self, cuda: HostCuda, spin: bool) -> None:
        self._cuda, self.spin, self.at = cuda, spin, 0.0

    def record(self, stream: Any) -> None:
        self._cuda.log.append("record")
        self.at += 1.0

    def synchronize(self) -> None:
        self._cuda.log.append("wait")

    def time_till(self, other: _Event) -> float:
        return 0.25
