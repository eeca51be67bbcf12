"""The little of CUDA that running an engine needs: pycuda for memory, streams and events, cuda-python for graphs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pipeline.errors import InputError, MissingPackageError, StageError

if TYPE_CHECKING:
    import numpy as np

CAPTURE_MODE = "cudaStreamCaptureModeThreadLocal"
"""Other threads (a clock watcher) may call CUDA while a graph is captured."""


class Cuda:
    """One GPU's primary context, current between `with` and its end, or until `close`.

    Raises:
        MissingPackageError: pycuda is not installed.
        InputError: no driver, or no such GPU.
    """

    def __init__(self, device: int) -> None:
        try:
            import pycuda.driver as driver
        except ModuleNotFoundError:
            raise MissingPackageError("pycuda", extra="tensorrt", purpose="running an engine") from None
        except ImportError as error:
            raise InputError(f"pycuda cannot be imported: {error}", hint="it needs NVIDIA's driver (libcuda)") from None
        self._driver = driver
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # NVML's order: the facts are of the GPU that runs
        try:
            driver.init()
            self._primary = driver.Device(device).retain_primary_context()
        except driver.Error as error:
            raise InputError(f"GPU {device} cannot be used: {error}", where="build.device", hint="nvidia-smi -L") from None
        self._primary.push()
        self.bus_id = str(driver.Device(device).pci_bus_id())

    def __enter__(self) -> Cuda:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the context; everything made in it must be gone."""
        self._primary.pop()

    def stream(self) -> Any:
        """A stream; its `handle` is what TensorRT takes."""
        return self._driver.Stream()

    def event(self, *, spin: bool) -> Any:
        """A timing event; waiting for it spins, or sleeps until the GPU says so."""
        flags = self._driver.event_flags.DEFAULT if spin else self._driver.event_flags.BLOCKING_SYNC
        return self._driver.Event(int(flags))

    def device_bytes(self, count: int) -> Any:
        """Memory on the GPU (at least one byte); `int()` of it is its address. Freed when it is collected."""
        return self._driver.mem_alloc(max(1, count))

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """A pinned array on the host, for transfers that overlap nothing but are as fast as the bus."""
        import numpy as np

        if 0 in shape:
            return np.empty(shape, dtype)  # CUDA allocates nothing of no size
        array: np.ndarray = self._driver.pagelocked_empty(shape, dtype)
        return array

    def to_device(self, device: Any, host: np.ndarray, stream: Any) -> None:
        """Copy a contiguous host array to the GPU, in the stream."""
        self._driver.memcpy_htod_async(device, host, stream)

    def to_host(self, host: np.ndarray, device: Any, stream: Any) -> None:
        """Copy GPU memory into a contiguous host array, in the stream."""
        self._driver.memcpy_dtoh_async(host, device, stream)

    def graph(self, stream: Any, enqueue: Callable[[], None]) -> Callable[[], None]:
        """Capture what `enqueue` puts into `stream`; returns what launches it again.

        Raises:
            MissingPackageError: cuda-python is not installed.
            StageError: the work cannot be captured.
        """
        runtime = _graph_library()
        _checked(runtime.cudaStreamBeginCapture(stream.handle, getattr(runtime.cudaStreamCaptureMode, CAPTURE_MODE)), "begin of capture")
        try:
            enqueue()
        finally:
            captured = runtime.cudaStreamEndCapture(stream.handle)
        graph = _checked(captured, "end of capture")
        executable = _checked(runtime.cudaGraphInstantiate(graph, 0), "instantiation")

        def launch() -> None:
            _checked(runtime.cudaGraphLaunch(executable, stream.handle), "launch")

        return launch


def _graph_library() -> Any:
    """cuda-python's runtime API: `cuda.bindings.runtime`, or `cuda.cudart` before 12.8."""
    try:
        from cuda.bindings import runtime
    except ImportError:
        try:
            from cuda import cudart as runtime
        except ImportError:
            raise MissingPackageError("cuda-python", extra="tensorrt", purpose="timing with CUDA graphs (build.cuda_graph)") from None
    return runtime


def _checked(answer: tuple[Any, ...], what: str) -> Any:
    """The value of a cuda-python call, whose first item is its status."""
    status, *values = answer
    if int(status) != 0:
        raise StageError(f"CUDA graph: {what} failed with {status.name}", hint="build.cuda_graph: false times without a graph")
    return values[0] if values else None
