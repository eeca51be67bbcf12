"""Runs a TensorRT plan on batches that come through standard input. Sent to the target as this one file: it needs tensorrt and numpy.

Usage: python3 runner.py PLAN DEVICE. Reads frames (8 bytes length, little endian, then an .npz of the inputs; `__profile__`
chooses the optimization profile), writes frames (an .npz of the outputs, or of `__error__`). bfloat16 travels as uint16 under
`name` with `__bfloat16__` listing the names. It uses the CUDA runtime through ctypes, so that the target needs no pycuda.
"""

from __future__ import annotations

import ctypes
import io
import os
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

LIBRARIES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")
TO_DEVICE, TO_HOST = 1, 2
TYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "uint16",
    "INT64": "int64",
    "INT32": "int32",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
}


def cuda_library() -> Any:
    """The CUDA runtime, by the names that its versions have."""
    tried = []
    for name in (os.environ.get("SPARSEGATE_CUDART"), *LIBRARIES):
        try:
            if name:
                return ctypes.CDLL(name)
        except OSError as error:
            tried.append(str(error))
    raise RuntimeError("no CUDA runtime library: " + "; ".join(tried))


class Cuda:
    """malloc, copy and free on the GPU, with their status checked."""

    def __init__(self, device: str) -> None:
        self.library = cuda_library()
        self.check(self.library.cudaSetDevice(int(device)), "cudaSetDevice")

    def check(self, status: int, what: str) -> None:
        if status != 0:
            raise RuntimeError(f"{what} failed with CUDA error {status}")

    def alloc(self, count: int) -> int:
        address = ctypes.c_void_p()
        self.check(self.library.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(max(1, count))), "cudaMalloc")
        return int(address.value or 0)

    def free(self, address: int) -> None:
        self.check(self.library.cudaFree(ctypes.c_void_p(address)), "cudaFree")

    def copy(self, to: int, source: int, count: int, kind: int) -> None:
        status = self.library.cudaMemcpy(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(count), kind)
        self.check(status, "cudaMemcpy")

    def wait(self) -> None:
        self.check(self.library.cudaDeviceSynchronize(), "cudaDeviceSynchronize")


class Engine:
    """A loaded plan with one execution context."""

    def __init__(self, plan: str, device: str) -> None:
        import tensorrt as trt

        self.cuda = Cuda(device)
        self.trt = trt
        self.logger = trt.Logger(trt.Logger.ERROR)
        self.runtime = trt.Runtime(self.logger)
        self.engine = self.runtime.deserialize_cuda_engine(Path(plan).read_bytes())
        if self.engine is None:
            raise RuntimeError(f"TensorRT {trt.__version__} does not load the plan")
        self.context = self.engine.create_execution_context()
        self.names = [self.engine.get_tensor_name(index) for index in range(self.engine.num_io_tensors)]
        self.profile = 0

    def is_input(self, name: str) -> bool:
        return bool(self.engine.get_tensor_mode(name) == self.trt.TensorIOMode.INPUT)

    def run(self, feeds: dict[str, Any], profile: int) -> dict[str, Any]:
        if profile != self.profile:
            if not self.context.set_optimization_profile_async(profile, 0):
                raise RuntimeError(f"no optimization profile {profile}")
            self.cuda.wait()
            self.profile = profile
        held: list[int] = []
        try:
            return self.bound(feeds, held)
        finally:
            for address in held:
                self.cuda.free(address)

    def bound(self, feeds: dict[str, Any], held: list[int]) -> dict[str, Any]:
        keep = []
        for name in [name for name in self.names if self.is_input(name)]:
            array = np.ascontiguousarray(feeds[name], dtype=self.dtype(name))
            keep.append(array)
            if not self.context.set_input_shape(name, tuple(array.shape)):
                raise RuntimeError(f"input {name}: TensorRT refuses the shape {list(array.shape)}")
            if self.engine.get_tensor_location(name) == self.trt.TensorLocation.HOST:
                self.context.set_tensor_address(name, array.ctypes.data)
                continue
            held.append(self.cuda.alloc(array.nbytes))
            self.cuda.copy(held[-1], array.ctypes.data, array.nbytes, TO_DEVICE)
            self.context.set_tensor_address(name, held[-1])
        outputs = {}
        for name in [name for name in self.names if not self.is_input(name)]:
            shape = tuple(self.context.get_tensor_shape(name))
            if min(shape, default=0) < 0:
                raise RuntimeError(f"output {name} has a shape that depends on data: use the tensorrt backend")
            host = np.empty(shape, self.dtype(name))
            held.append(self.cuda.alloc(host.nbytes))
            self.context.set_tensor_address(name, held[-1])
            outputs[name] = (host, held[-1])
        if not self.context.execute_async_v3(0):
            raise RuntimeError("TensorRT does not run the engine")
        self.cuda.wait()
        for host, address in outputs.values():
            self.cuda.copy(host.ctypes.data, address, host.nbytes, TO_HOST)
        return {name: host for name, (host, _) in outputs.items()}

    def dtype(self, name: str) -> Any:
        kind = self.engine.get_tensor_dtype(name).name
        return np.dtype(TYPES.get(kind, kind.lower()))

    def bfloat16(self) -> list[str]:
        return [name for name in self.names if self.engine.get_tensor_dtype(name).name == "BF16"]


def read_exactly(stream: BinaryIO, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        chunk = stream.read(count - len(data))
        if not chunk:
            return None
        data += chunk
    return data


def send(stream: BinaryIO, arrays: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    data = buffer.getvalue()
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def main(plan: str, device: str) -> int:
    # TensorRT and its plugins may print to standard output, which carries the frames: it is moved aside
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        loaded = Engine(plan, device)
    except Exception as error:  # noqa: BLE001 (the other side is told whatever it was)
        send(frames, {"__error__": np.array(f"{type(error).__name__}: {error}")})
        return 1
    send(frames, {"__ready__": np.array(loaded.trt.__version__), "__bfloat16__": np.array(loaded.bfloat16(), dtype="U")})
    while True:
        head = read_exactly(sys.stdin.buffer, 8)
        if head is None:
            return 0
        body = read_exactly(sys.stdin.buffer, struct.unpack("<Q", head)[0])
        if body is None:
            return 1
        try:
            with np.load(io.BytesIO(body), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            send(frames, loaded.run(arrays, int(arrays.pop("__profile__"))))
        except Exception as error:  # noqa: BLE001 (one bad batch does not end the service)
            send(frames, {"__error__": np.array(f"{type(error).__name__}: {error}")})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
