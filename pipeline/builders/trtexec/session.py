"""An engine timed by trtexec: every block is a process of its own, so arms alternate process by process."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.builders.feeds import checked_feeds
from pipeline.builders.options import TensorRTOptions
from pipeline.builders.profiles import profile_of
from pipeline.builders.tensorrt.dtypes import numpy_dtype
from pipeline.builders.trtexec import exports, flags, process
from pipeline.builders.trtexec.build import plan_name
from pipeline.builders.trtexec.remote import RemoteRunner
from pipeline.builders.trtexec.target import IN_BUS_ORDER, Target
from pipeline.builders.versions import Version
from pipeline.errors import StageError
from pipeline.records.engines import Engine

if TYPE_CHECKING:
    import numpy as np

WARMUP_MS = 200
PROFILE_RUNS = 10
Arrays = Mapping[str, "np.ndarray"]


class TrtexecSession:
    """One plan on the target.

    Args:
        target: The machine.
        options: How to time.
        version: Of its trtexec.
        engine: The record of the plan.
        plan: Its file here.
        doubts: Receives what trtexec itself says against its times.
    """

    def __init__(self, target: Target, options: TensorRTOptions, version: Version, engine: Engine, plan: Path, doubts: list[str]) -> None:
        self._target = target
        self._options = options
        self._version = version
        self._engine = engine
        self._doubts = doubts
        self._scratch = tempfile.TemporaryDirectory(prefix="sparsegate-trtexec-")
        self._tag = uuid.uuid4().hex[:8]
        self._plan = target.push(plan, plan_name(engine.plan.sha256))
        self._runner: RemoteRunner | None = None
        self._left: list[str] = []

    def run(self, feeds: Arrays) -> dict[str, np.ndarray]:
        """Run once: through the runner file where the target has a Python for it, else by one trtexec process.

        Without the runner the outputs are float32 of about 6 digits, as trtexec prints them.
        """
        arrays = self._checked(feeds)
        if self._options.target_python is not None:
            if self._runner is None:
                self._runner = RemoteRunner(
                    self._target, self._options.target_python, self._plan, self._options.device, self._options.timeout_s
                )
            return self._runner.run(arrays, self._profile(arrays))
        file = self.trtexec("output", arrays, [*self._say("iterations", 1), *self._say("warm-up ms", 0)], "outputs")
        return exports.outputs(file)

    def sampler(self, feeds: Arrays) -> TrtexecSampler:
        """Bring `feeds` to the target."""
        return TrtexecSampler(self, self._checked(feeds))

    def profile(self, feeds: Arrays, passes: int) -> dict[str, list[float]]:
        """Per engine layer one mean in ms per pass; each pass is a process."""
        arrays = self._checked(feeds)
        means: dict[str, list[float]] = {}
        for _ in range(passes):
            flags_ = [*self._say("iterations", PROFILE_RUNS), *self._say("profile layers"), *self._say("profile in a run apart")]
            for layer, mean in exports.layer_times(self.trtexec("profile", arrays, flags_, "layer times")).items():
                means.setdefault(layer, []).append(mean)
        return means

    def trtexec(self, what: str, arrays: Arrays, more: Sequence[str], export: str) -> Path:
        """Run trtexec on the loaded plan and fetch the file that it exports; the log of the latest run is kept beside it.

        Raises:
            StageError: it failed, or exported nothing.
        """
        here = Path(self._scratch.name) / f"{what}.json"
        there = str(here) if self._target.local else self._target.path(f"{self._tag}-{what}.json")
        here.unlink(missing_ok=True)
        command = [
            *IN_BUS_ORDER,
            self._options.trtexec,
            *self._say("load plan", self._plan),
            *self._say("device", self._options.device),
            *self._shape_flags(arrays),
            *self._say("inputs", flags.pairs(self._send(arrays))),
            *self._say("least seconds", 0),
            *more,
            *self._say(export, there),
        ]
        log = Path(self._scratch.name) / f"{what}.log"
        finished = process.run(self._target, command, log, timeout_s=self._options.timeout_s, pid_name=f"{self._tag}.pid")
        self._doubts += [doubt for doubt in finished.doubts() if doubt not in self._doubts]
        self._left = sorted({*self._left, there})
        if not self._target.pull(there, here):
            raise StageError("trtexec says PASSED, but exported nothing", where=str(log), hint=finished.text.strip()[-300:])
        return here

    def timing_flags(self, count: int) -> list[str]:
        """How `count` inferences are timed, every choice said."""
        options, version = self._options, self._version
        return [
            *self._say("iterations", count),
            *self._say("warm-up ms", WARMUP_MS),
            *self._say("no pauses"),
            *flags.switch(options.cuda_graph, "cuda graph", version),
            *flags.switch(options.spin_wait, "spin wait", version),
            *flags.switch(options.transfers, "transfers", version),
        ]

    def _say(self, meaning: str, *values: object) -> list[str]:
        return flags.say(meaning, self._version, *values)

    def close(self) -> None:
        """End the runner; remove what was sent, but not the plan, which another run may time again."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        if not self._target.local and self._left:
            self._target.remove([*self._left, self._target.path(f"{self._tag}.pid")])
        self._scratch.cleanup()

    def _checked(self, feeds: Arrays) -> dict[str, np.ndarray]:
        """Feeds in the types that the plan reads: trtexec takes raw bytes and checks only their number."""
        shapes = {name: list(array.shape) for name, array in feeds.items()}
        if any(name not in shapes for name in self._engine.inputs):
            return checked_feeds(feeds, {name: (kind, []) for name, kind in self._engine.inputs.items()})
        arrays = checked_feeds(feeds, {name: (kind, list(shapes[name])) for name, kind in self._engine.inputs.items()})
        self._profile(arrays)  # refuses what no profile allows
        return arrays

    def _profile(self, arrays: Arrays) -> int:
        return profile_of(self._engine.profiles, {name: array.shape for name, array in arrays.items()})

    def _shape_flags(self, arrays: Arrays) -> list[str]:
        dynamic = {name: flags.dims(array.shape) for name, array in arrays.items() if name in self._engine.dynamic_inputs}
        if not dynamic:
            return []  # a fixed shape may not be given
        said = self._say("shapes", flags.pairs(dynamic))
        index = self._profile(arrays)
        return [*said, *self._say("use profile", index)] if index else said

    def _send(self, arrays: Arrays) -> dict[str, str]:
        """Raw files of the inputs on the target, by input name; file names are ours, since trtexec splits at `,` and `:`."""
        places = {}
        for index, (name, array) in enumerate(arrays.items()):
            file = Path(self._scratch.name) / f"input{index}.bin"
            file.write_bytes(array.astype(numpy_dtype(self._engine.inputs[name])).tobytes())
            places[name] = self._target.push(file, f"{self._tag}-input{index}.bin")
            self._left = sorted({*self._left, *([] if self._target.local else [places[name]])})
        return places


class TrtexecSampler:
    """Blocks of inferences, each block one trtexec process with its own warm-up."""

    level = "process"
    """How the sampling interleaves arms of this kind."""

    def __init__(self, session: TrtexecSession, arrays: Arrays) -> None:
        self._session = session
        self._arrays = arrays

    def block(self, count: int) -> dict[str, np.ndarray]:
        """Time `count` inferences in one process: `gpu_compute`, `host_latency`, `enqueue`, ms, float64 [count] each."""
        said = self._session.timing_flags(count)
        return exports.times(self._session.trtexec("times", self._arrays, said, "times"), count)
