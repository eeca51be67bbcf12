"""A loaded engine: bound to real inputs, run once, or timed inference by inference."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.builders.feeds import checked_feeds
from pipeline.builders.options import TensorRTOptions
from pipeline.builders.profiles import ProfileShapes, profile_of
from pipeline.builders.tensorrt.buffers import Buffers
from pipeline.builders.tensorrt.dtypes import numpy_name
from pipeline.errors import StageError

if TYPE_CHECKING:
    import numpy as np

    from pipeline.builders.tensorrt.cuda import Cuda

WARMUP = 5
"""Inferences before a sampler is handed out: lazy kernel loading ends with the first."""
PROFILE_RUNS = 10
PROFILE_WARMUP = 2


class TrtSession:
    """One engine with its own execution context, stream and buffers.

    Args:
        trt: The library.
        engine: An ICudaEngine.
        cuda: The GPU it runs on; the session closes it.
        options: How to time.
        profiles: The optimization profiles that it was built with.
    """

    def __init__(self, trt: Any, engine: Any, cuda: Cuda, options: TensorRTOptions, profiles: Sequence[ProfileShapes]) -> None:
        self._trt = trt
        self._engine = engine
        self._cuda = cuda
        self._options = options
        self._profiles = profiles
        self._context = engine.create_execution_context()
        if self._context is None:
            raise StageError("TensorRT makes no execution context", where="engine", hint="is there memory left on the GPU?")
        self._stream = cuda.stream()
        self._profile = 0

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run once; outputs by name, on the host."""
        buffers = self._bind(feeds)
        buffers.send()
        self._enqueue()
        buffers.fetch()
        self._stream.synchronize()
        return buffers.outputs()

    def sampler(self, feeds: Mapping[str, np.ndarray]) -> TrtSampler:
        """Bind `feeds`, warm up, capture a CUDA graph where asked."""
        buffers = self._bind(feeds)
        buffers.send()
        for _ in range(WARMUP):
            self._enqueue()
        self._stream.synchronize()
        compute: Callable[[], None] = self._enqueue
        graph = self._options.cuda_graph and not buffers.data_dependent
        if graph:  # shapes that depend on data cannot be captured
            compute = self._cuda.graph(self._stream, self._enqueue)
        return TrtSampler(self._cuda, self._stream, compute, buffers, self._options, graph=graph)

    def profile(self, feeds: Mapping[str, np.ndarray], passes: int) -> dict[str, list[float]]:
        """Per engine layer one mean in ms per pass, from TensorRT's own profiler."""
        buffers = self._bind(feeds)
        buffers.send()
        profiler = _profiler_class(self._trt)()
        self._context.profiler = profiler
        means: dict[str, list[float]] = {}
        for _ in range(passes):
            for index in range(PROFILE_WARMUP + PROFILE_RUNS):
                if index == PROFILE_WARMUP:
                    profiler.times.clear()
                self._enqueue()
                self._stream.synchronize()
            for layer, total in profiler.times.items():
                means.setdefault(layer, []).append(total / PROFILE_RUNS)
        self._context.profiler = None
        return means

    def close(self) -> None:
        """Free the context, the engine and the GPU's context, in this order."""
        if self._context is not None:
            self._context = self._engine = self._stream = None
            self._cuda.close()

    def _bind(self, feeds: Mapping[str, np.ndarray]) -> Buffers:
        if self._context is None:
            raise StageError("the session is closed", where="tensorrt")
        inputs = {
            name: (numpy_name(self._engine.get_tensor_dtype(name)), list(self._engine.get_tensor_shape(name)))
            for name in self._names("INPUT")
        }
        arrays = checked_feeds(feeds, inputs)
        self._choose_profile({name: array.shape for name, array in arrays.items()})
        buffers = Buffers(self._trt, self._engine, self._context, self._cuda, self._stream)
        for name, array in arrays.items():
            buffers.add_input(name, array)
        missing = self._context.infer_shapes()
        if missing:
            raise StageError(f"TensorRT cannot infer the shapes; it lacks {', '.join(missing)}", where="engine inputs")
        for name in self._names("OUTPUT"):
            buffers.add_output(name)
        return buffers

    def _choose_profile(self, shapes: Mapping[str, Sequence[int]]) -> None:
        index = profile_of(self._profiles, shapes)
        if index != self._profile:
            if not self._context.set_optimization_profile_async(index, self._stream.handle):
                raise StageError(f"TensorRT does not switch to optimization profile {index}", where="engine")
            self._stream.synchronize()
            self._profile = index

    def _names(self, mode: str) -> list[str]:
        wanted = self._trt.TensorIOMode.__members__[mode]
        names = [self._engine.get_tensor_name(index) for index in range(self._engine.num_io_tensors)]
        return [name for name in names if self._engine.get_tensor_mode(name) == wanted]

    def _enqueue(self) -> None:
        if not self._context.execute_async_v3(self._stream.handle):
            raise StageError("TensorRT does not run the engine", where="engine", hint="the process log has its reason")


class TrtSampler:
    """Times each inference apart: its kernels by events, its enqueueing and the whole by the wall clock."""

    def __init__(
        self, cuda: Cuda, stream: Any, compute: Callable[[], None], buffers: Buffers, options: TensorRTOptions, *, graph: bool
    ) -> None:
        self._stream = stream
        self._compute = compute
        self._buffers = buffers
        self._transfers = options.transfers
        self._start, self._end, self._done = (cuda.event(spin=options.spin_wait) for _ in range(3))
        self.settings = {"cuda_graph": "on" if graph else "off", "transfers": "on" if options.transfers else "off"}

    def block(self, count: int) -> dict[str, np.ndarray]:
        """Run `count` inferences one after the other: `gpu_compute`, `enqueue`, `host_latency`, ms, float64 [count] each."""
        import numpy as np

        gpu, enqueue, host = (np.empty(count) for _ in range(3))
        clock = time.perf_counter_ns
        for index in range(count):
            began = clock()
            if self._transfers:
                self._buffers.send()
            self._start.record(self._stream)
            self._compute()
            self._end.record(self._stream)
            if self._transfers:
                self._buffers.fetch()
            self._done.record(self._stream)
            enqueued = clock()
            self._done.synchronize()
            host[index] = (clock() - began) / 1e6
            enqueue[index] = (enqueued - began) / 1e6
            gpu[index] = self._start.time_till(self._end)
        return {"gpu_compute": gpu, "enqueue": enqueue, "host_latency": host}


def _profiler_class(trt: Any) -> Any:
    class Times(trt.IProfiler):  # type: ignore[misc]  # the base is known only at run time
        def __init__(self) -> None:
            trt.IProfiler.__init__(self)
            self.times: dict[str, float] = {}

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            self.times[layer_name] = self.times.get(layer_name, 0.0) + ms

    return Times
