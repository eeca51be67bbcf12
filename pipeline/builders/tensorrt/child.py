"""The building process: a crash, a sticky CUDA error or a lack of memory ends it, and not the run.

Started as `python -m pipeline.builders.tensorrt.child REQUEST.json RESULT.json EVENTS_FD`. SIGTERM asks the build to stop at its
next step; the answer is written in one step, so that a reader never sees half of it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from pipeline.builders.tensorrt.request import PhaseEvent, PlanRequest, PlanResult
from pipeline.errors import ExitCode, SparsegateError
from pipeline.records.io import write_bytes


def main(arguments: list[str]) -> int:
    """Build what the request says; 0, or 4 with the reason in the result."""
    request_file, result_file, events = Path(arguments[0]), Path(arguments[1]), int(arguments[2])
    request = msgspec.json.decode(request_file.read_bytes(), type=PlanRequest)
    result = _guarded(request, events)
    write_bytes(result_file, msgspec.json.encode(result))
    return 0 if result.error is None else int(ExitCode.STAGE)


def _guarded(request: PlanRequest, events: int) -> PlanResult:
    stopped = stop_request()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means

    def report(phase: str, depth: int, done: int, total: int) -> None:
        with contextlib.suppress(OSError):  # a parent that no longer listens
            os.write(events, msgspec.json.encode(PhaseEvent(phase=phase, depth=depth, done=done, total=total)) + b"\n")

    from pipeline.builders.tensorrt.library import LIBRARIES
    from pipeline.builders.tensorrt.logger import LogFile
    from pipeline.builders.tensorrt.plan import build_plan

    log = LogFile(Path(request.path(".log")), verbose=request.options.logs_verbose)
    try:
        with _device(request, LIBRARIES[request.library].deserializes):
            return build_plan(request, log, report, stopped)
    except SparsegateError as error:
        log.own(f"failed: {error.what}", "E")
        usage = error.exit_code is ExitCode.USAGE
        return PlanResult(error=error.what, where=error.where, hint=error.hint, usage=usage)
    finally:
        log.close()


def stop_request() -> Callable[[], bool]:
    """Whether SIGTERM has come, for whatever thread asks.

    A handler written in Python runs in the main thread alone, which a build keeps inside the library, while TensorRT reports progress from
    threads of its own. What the interpreter writes into the wakeup pipe is there at once.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda signum, frame: None)  # without a handler nothing is written
    return lambda: bool(select.select([reading], [], [], 0)[0])


def _device(request: PlanRequest, wanted: bool) -> contextlib.AbstractContextManager[object]:
    """The GPU that the recipe names is the current one while the plan is built; a build for named compute capabilities needs none."""
    if not wanted:
        return contextlib.nullcontext()
    from pipeline.builders.tensorrt.cuda import Cuda

    return Cuda(request.options.device)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
