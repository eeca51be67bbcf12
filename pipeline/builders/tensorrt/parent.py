"""Runs the building process, shows its progress, and outlives whatever happens to it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from pipeline.builders.tensorrt.library import LIBRARIES
from pipeline.builders.tensorrt.request import PhaseEvent, PlanRequest, PlanResult
from pipeline.errors import InputError, StageError
from pipeline.progress import Progress

GRACE_S = 10.0
"""Time that a build has to stop at its next step before it is killed."""
TICK_S = 0.5
TAIL_BYTES = 4096


def build_in_child(request: PlanRequest, progress: Progress) -> PlanResult:
    """Build in a process of its own.

    Raises:
        InputError: the request cannot be followed.
        StageError: the build failed, crashed, was killed or ran too long; the log says how far it came.
    """
    with tempfile.TemporaryDirectory(prefix="sparsegate-build-") as scratch:
        question, answer = Path(scratch) / "request.json", Path(scratch) / "result.json"
        question.write_bytes(msgspec.json.encode(request))
        stderr = Path(request.path(".stderr"))
        status = _supervise(request, question, answer, stderr, progress)
        if not answer.is_file():
            raise _no_answer(request, status, stderr)
        result = msgspec.json.decode(answer.read_bytes(), type=PlanResult)
    if result.error is not None:
        kind = InputError if result.usage else StageError
        raise kind(result.error, where=result.where, hint=result.hint)
    if stderr.is_file() and stderr.stat().st_size == 0:
        stderr.unlink()
    return result


def _supervise(request: PlanRequest, question: Path, answer: Path, stderr: Path, progress: Progress) -> int:
    """Start the process and wait for it; it never outlives this call."""
    reading, writing = os.pipe()
    environment = {**os.environ, **LIBRARIES[request.library].polygraphy_environment, "POLYGRAPHY_AUTOINSTALL_DEPS": "0"}
    command = [sys.executable, "-m", "pipeline.builders.tensorrt.child", str(question), str(answer), str(writing)]
    stderr.parent.mkdir(parents=True, exist_ok=True)
    with stderr.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env=environment,
            pass_fds=(writing,),
            start_new_session=True,  # Ctrl-C reaches this process alone
        )
    os.close(writing)
    try:
        _watch(request, process, reading, progress)
    except BaseException:
        _stop(process)
        raise
    finally:
        os.close(reading)
    return process.returncode


def _watch(request: PlanRequest, process: subprocess.Popen[bytes], reading: int, progress: Progress) -> None:
    started = time.monotonic()
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        listening = True
        while process.poll() is None:
            elapsed = time.monotonic() - started
            if elapsed > request.options.timeout_s:
                raise StageError(
                    f"the build did not end within {request.options.timeout_s} s; last line: {last_line(Path(request.path('.log')))}",
                    where=request.path(".log"),
                    hint="raise build.timeout_s, or lower build.optimization_level",
                )
            if listening and selector.select(TICK_S):
                chunk = os.read(reading, 65536)
                if not chunk:
                    selector.unregister(reading)
                    listening = False
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    _show(request, line, progress)
            else:
                if not listening:
                    time.sleep(TICK_S / 10)
                progress(f"build {request.stem}", elapsed, None, f"{elapsed:.0f} s: {last_line(Path(request.path('.log')))}")


def _show(request: PlanRequest, line: bytes, progress: Progress) -> None:
    event = msgspec.json.decode(line, type=PhaseEvent)
    progress(f"build {request.stem} {'· ' * event.depth}{event.phase}", event.done, event.total)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the build to stop; after a while end its whole process group."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def last_line(log: Path) -> str:
    """Last line of a log that is still being written, cut to a line of a terminal."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1][-100:] if lines else ""


def _no_answer(request: PlanRequest, status: int, stderr: Path) -> StageError:
    """The error of a process that ended without a word."""
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    why = " (the system ends processes so when memory runs out)" if status == -signal.SIGKILL else ""
    said = last_line(stderr)
    return StageError(
        f"the building process {how}{why}; last line of its log: {last_line(Path(request.path('.log'))) or 'none'}"
        + (f"; it said: {said}" if said else ""),
        where=request.path(".log"),
        hint="the log holds all that TensorRT said before",
    )
