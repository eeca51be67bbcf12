"""The onnxruntime backend: runs anywhere, has no sparse kernels, and is what an embedded CPU target would use.

ONNX Runtime's optimised model holds for one machine and one version, so the plan is a copy of the ONNX file and
the graph is optimised anew at each load.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import machine
from pipeline.builders.artifacts import check_plan, engine_stem
from pipeline.builders.base import ArmRequest
from pipeline.builders.feeds import checked_feeds
from pipeline.builders.model_io import copy_whole, input_types
from pipeline.errors import InputError, StageError
from pipeline.gpu_watch import Observation
from pipeline.progress import Progress, silent
from pipeline.records.artifact import Artifact
from pipeline.records.engines import Engine

if TYPE_CHECKING:
    import numpy as np

PROVIDER = "CPUExecutionProvider"
PROFILE_RUNS = 10
"""Inferences per profiling pass, after the warm-up ones."""
PROFILE_WARMUP = 2
KERNEL_EVENT = "_kernel_time"
"""Suffix of the profiler's event for one node's kernel."""


def backend(options: Mapping[str, object]) -> OnnxRuntime:
    """The backend with `threads` of the recipe's `build` section."""
    threads = options.get("threads", 1)
    if not isinstance(threads, int) or threads < 1:
        raise InputError(f"threads must be a whole number from 1, not {threads!r}", where="build.threads")
    if options.get("precision", "file") != "file":
        raise InputError("ONNX Runtime runs the types of the file", where="build.precision", hint="export.precision, or another backend")
    return OnnxRuntime(threads)


def _library() -> Any:
    import onnxruntime

    return onnxruntime


class OnnxRuntime:
    """ONNX Runtime on the CPU, `threads` threads inside an operator."""

    name = "onnxruntime"
    sparse_kernels: bool | None = False
    flag_is_inert = True
    main_metric = "host_latency"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def describe(self) -> dict[str, str]:
        """Version, provider, processor and threads."""
        return {
            "onnxruntime": metadata.version("onnxruntime"),
            "provider": PROVIDER,
            "cpu": machine.cpu_name(),
            "threads": str(self.threads),
        }

    def settings(self) -> dict[str, str]:
        """What two measurements must share to be compared."""
        return {"provider": PROVIDER, "threads": str(self.threads), "spinning": "off", "transfers": "none"}

    def watch(self) -> Unwatched:
        """A processor's clocks are not looked at."""
        return Unwatched()

    def build(self, request: ArmRequest, folder: Path, progress: Progress = silent) -> Engine:
        """Copy the ONNX file and prove that a session can be made of it.

        Raises:
            StageError: ONNX Runtime refuses the file; says why in its own words.
        """
        folder.mkdir(parents=True, exist_ok=True)
        stem = engine_stem(request)
        progress(f"build {stem}", 0, 1)
        started = time.perf_counter()
        plan = folder / f"{stem}.onnx"
        copy_whole(request.onnx, plan)
        session = self._session(plan)
        seconds = time.perf_counter() - started
        log = folder / f"{stem}.log"
        log.write_text(self._log_text(request, session, seconds))
        progress(f"build {stem}", 1, 1, f"{seconds:.1f} s")
        return Engine(
            arm=request.arm,
            repeat=request.repeat,
            onnx_arm=request.onnx_arm,
            plan=Artifact.of(plan, relative_to=folder),
            log=Artifact.of(log, relative_to=folder),
            options={"sparse_weights": request.sparse_weights, "precision": request.precision, "threads": self.threads},
            built_with={"onnxruntime": self.describe()["onnxruntime"]},
            profiles=request.profiles,
            inputs=input_types(plan),
            seconds=seconds,
        )

    def load(self, engine: Engine, folder: Path) -> OrtSession:
        """Load the copied file after checking its digest.

        Raises:
            TamperedError: the file's bytes are not those that were built.
        """
        return OrtSession(self._session(check_plan(engine, folder)))

    def profile(self, engine: Engine, folder: Path, feeds: Mapping[str, np.ndarray], passes: int) -> dict[str, list[float]]:
        """Time every node with ONNX Runtime's own profiler: node of the optimised graph -> one mean in ms per pass."""
        plan = check_plan(engine, folder)
        times: dict[str, list[float]] = defaultdict(list)
        for _ in range(passes):
            with tempfile.TemporaryDirectory(prefix="sparsegate-") as scratch:
                session = self._session(plan, profile_into=Path(scratch) / "profile")
                inputs = checked_feeds(feeds, _inputs(session))
                for _ in range(PROFILE_WARMUP + PROFILE_RUNS):
                    session.run(None, inputs)
                events = json.loads(Path(session.end_profiling()).read_text())
            for node, mean in _node_means(events).items():
                times[node].append(mean)
        return dict(times)

    def onnx_nodes(self, engine: Engine, folder: Path, layers: Sequence[str]) -> dict[str, list[str]]:
        """By the names of fused kernels."""
        from pipeline.builders.ort_nodes import onnx_nodes

        return onnx_nodes(folder / engine.plan.path, layers)

    def _session(self, plan: Path, profile_into: Path | None = None) -> Any:
        ort = _library()
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = self.threads
        settings.inter_op_num_threads = 1
        # Pools that spin while they wait take a core from the other arms of an interleaved measurement.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        settings.add_session_config_entry("session.inter_op.allow_spinning", "0")
        settings.log_severity_level = 3
        if profile_into is not None:
            settings.enable_profiling = True
            settings.profile_file_prefix = str(profile_into)
        try:
            return ort.InferenceSession(str(plan), sess_options=settings, providers=[PROVIDER])
        except Exception as error:  # noqa: BLE001 (its exceptions have no common base but Exception)
            raise StageError(f"ONNX Runtime refuses the model: {error}", where=str(plan), hint="sparsegate check on the file") from None

    def _log_text(self, request: ArmRequest, session: Any, seconds: float) -> str:
        lines = [f"{key}: {value}" for key, value in {**self.describe(), **self.settings()}.items()]
        lines += [f"arm: {request.arm}#{request.repeat}", f"onnx: {request.onnx_arm}", f"providers: {', '.join(session.get_providers())}"]
        lines += [f"sparse_weights: {request.sparse_weights} (no effect: this backend has no sparse kernels)"]
        lines += [f"input {tensor.name}: {tensor.type} {tensor.shape}" for tensor in session.get_inputs()]
        lines += [f"output {tensor.name}: {tensor.type} {tensor.shape}" for tensor in session.get_outputs()]
        return "\n".join([*lines, f"session created in {seconds:.3f} s", ""])


class Unwatched:
    """Looks at nothing, and says so."""

    energy_source = "nothing"

    def energy_mj(self) -> float | None:
        """A processor's counters belong to the whole machine and need its administrator: not read."""
        return None

    def stop(self) -> Observation:
        """Everything is unobserved."""
        return Observation(unobserved=["processor clocks", "other processes on the processor"])


class OrtSession:
    """One loaded model with its own thread pool and buffers."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run once; outputs by name."""
        session = self._open()
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, checked_feeds(feeds, _inputs(session))), strict=True))

    def sampler(self, feeds: Mapping[str, np.ndarray]) -> OrtSampler:
        """Bind `feeds` once, and outputs of the shape that they give."""
        session = self._open()
        return OrtSampler(session, checked_feeds(feeds, _inputs(session)))

    def close(self) -> None:
        """Free the session."""
        self._session = None

    def _open(self) -> Any:
        if self._session is None:
            raise StageError("the session is closed", where="onnxruntime")
        return self._session


class OrtSampler:
    """Wall-clock time of one bound run: nothing is copied or allocated in it."""

    def __init__(self, session: Any, feeds: Mapping[str, np.ndarray]) -> None:
        ort = _library()
        self._session = session
        self._binding = session.io_binding()
        for name, array in feeds.items():
            self._binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
        for output, array in zip(session.get_outputs(), session.run(None, feeds), strict=True):
            self._binding.bind_ortvalue_output(output.name, ort.OrtValue.ortvalue_from_numpy(array))

    def block(self, count: int) -> dict[str, np.ndarray]:
        """Run `count` inferences back to back: `host_latency`, ms, float64 [count]."""
        import numpy as np

        ticks = np.empty(count + 1, dtype=np.int64)
        run, binding, clock = self._session.run_with_iobinding, self._binding, time.perf_counter_ns
        ticks[0] = clock()
        for index in range(1, count + 1):
            run(binding)
            ticks[index] = clock()
        return {"host_latency": np.diff(ticks) / 1e6}


def _inputs(session: Any) -> dict[str, tuple[str, list[int | str | None]]]:
    """Type (numpy's name) and shape by input name."""
    return {tensor.name: (NUMPY_TYPE.get(tensor.type, tensor.type), tensor.shape) for tensor in session.get_inputs()}


NUMPY_TYPE = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}
"""ONNX Runtime's name of a tensor type -> numpy's."""


def _node_means(events: list[dict[str, Any]]) -> dict[str, float]:
    """Mean ms per node over the runs after the warm-up, from a profile's events (durations in us)."""
    durations: dict[str, list[float]] = defaultdict(list)
    for event in events:
        name = event.get("name", "")
        if event.get("cat") == "Node" and name.endswith(KERNEL_EVENT):
            durations[name.removesuffix(KERNEL_EVENT)].append(event["dur"] / 1000)
    return {node: sum(kept) / len(kept) for node, runs in durations.items() if (kept := runs[PROFILE_WARMUP:])}
