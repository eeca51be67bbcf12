"""Device and host memory of one binding of an engine's inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.builders.tensorrt.dtypes import numpy_dtype, numpy_name
from pipeline.errors import StageError

if TYPE_CHECKING:
    import numpy as np

    from pipeline.builders.tensorrt.cuda import Cuda


class Buffers:
    """Holds what the engine reads and writes; addresses stay valid as long as this lives."""

    def __init__(self, trt: Any, engine: Any, context: Any, cuda: Cuda, stream: Any) -> None:
        self._trt = trt
        self._engine = engine
        self._context = context
        self._cuda = cuda
        self._stream = stream
        self._inputs: dict[str, tuple[Any, np.ndarray]] = {}
        self._outputs: dict[str, tuple[Any, np.ndarray]] = {}
        self._growing: dict[str, Any] = {}  # outputs whose shape depends on data -> allocator

    @property
    def data_dependent(self) -> bool:
        """Whether an output's shape is known only after the run."""
        return bool(self._growing)

    def add_input(self, name: str, array: np.ndarray) -> None:
        """Set an input's shape, and where the engine reads it: on the GPU, or on the host for a shape tensor."""
        if not self._context.set_input_shape(name, tuple(array.shape)):
            raise StageError(
                f"TensorRT refuses the shape {list(array.shape)}", where=f"input {name}", hint="is it inside the profile's min..max?"
            )
        host = self._cuda.pinned(array.shape, array.dtype)
        host[...] = array
        if self._engine.get_tensor_location(name) == self._trt.TensorLocation.HOST:
            self._inputs[name] = (None, host)
            self._address(name, host.ctypes.data)
            return
        device = self._cuda.device_bytes(host.nbytes)
        self._inputs[name] = (device, host)
        self._address(name, int(device))

    def add_output(self, name: str) -> None:
        """Give an output memory of its shape, or an allocator where the shape is known only after the run."""
        dtype = numpy_dtype(numpy_name(self._engine.get_tensor_dtype(name)))
        shape = tuple(self._context.get_tensor_shape(name))
        if any(extent < 0 for extent in shape):
            allocator = _allocator_class(self._trt)(self._cuda)
            self._growing[name] = allocator
            if not self._context.set_output_allocator(name, allocator):
                raise StageError("TensorRT refuses an output allocator", where=f"output {name}")
            return
        host = self._cuda.pinned(shape, dtype)
        device = self._cuda.device_bytes(host.nbytes)
        self._outputs[name] = (device, host)
        self._address(name, int(device))

    def send(self) -> None:
        """Copy the inputs to the GPU, in the stream."""
        for device, host in self._inputs.values():
            if device is not None:
                self._cuda.to_device(device, host, self._stream)

    def fetch(self) -> None:
        """Copy the outputs of known shape to the host, in the stream; the others once the run has ended."""
        for device, host in self._outputs.values():
            self._cuda.to_host(host, device, self._stream)

    def outputs(self) -> dict[str, np.ndarray]:
        """Copies of the outputs, after the stream was synchronised."""
        found = {name: host.copy() for name, (_, host) in self._outputs.items()}
        for name, allocator in self._growing.items():
            dtype = numpy_dtype(numpy_name(self._engine.get_tensor_dtype(name)))
            host = self._cuda.pinned(tuple(allocator.shape), dtype)
            if host.size:
                self._cuda.to_host(host, allocator.memory, self._stream)
                self._stream.synchronize()
            found[name] = host.copy()
        return found

    def _address(self, name: str, address: int) -> None:
        if not self._context.set_tensor_address(name, address):
            raise StageError("TensorRT refuses the address", where=f"tensor {name}")


def _allocator_class(trt: Any) -> Any:
    class Allocator(trt.IOutputAllocator):  # type: ignore[misc]  # the base is known only at run time
        """Memory that grows to what the run turns out to need."""

        def __init__(self, cuda: Cuda) -> None:
            trt.IOutputAllocator.__init__(self)
            self._cuda = cuda
            self._size = 0
            self.memory: Any = None
            self.shape: tuple[int, ...] = ()

        def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
            if self.memory is None or size > self._size:
                self.memory, self._size = self._cuda.device_bytes(size), size
            return int(self.memory)

        def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
            return self.reallocate_output(tensor_name, memory, size, alignment)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            self.shape = tuple(shape)

    return Allocator
