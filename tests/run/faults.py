"""Not a test: runs the command line in a process that a fault befalls.

`python tests/run/faults.py FAULT ARG...` runs `sparsegate ARG...` with one fault; `--serve` reads one such list of words
per line as JSON, runs each in a fork (the imports are done once) and answers with its exit status.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import importlib
import json
import os
import resource
import signal
import sys
from typing import Any, NamedTuple


class Point(NamedTuple):
    """Where in the run: just before or after the nth call of a function."""

    module: str
    function: str
    when: str
    nth: int = 1
    signal: int = signal.SIGKILL


POINTS = {
    "dense-epoch-written": Point("pipeline.training.resume", "save", "after", 2),
    "state-half-written": Point("os", "fsync", "before", 3),
    "finetune-epoch-written": Point("pipeline.training.resume", "save", "after", 5),
    "trained-not-evaluated": Point("pipeline.training.resume", "clear", "after"),
    "train-record-written": Point("pipeline.records.io", "write", "after", 2),
    "train-output-unnamed": Point("pipeline.run.store", "Store._named", "before"),
    "train-named-unrecorded": Point("pipeline.run.store", "Store._named", "after"),
    "freeze-output-unnamed": Point("pipeline.run.store", "Store._named", "before", 2),
    "first-arm-exported": Point("pipeline.graph.export", "export_model", "after"),
    "first-engine-built": Point("pipeline.builders.onnxruntime", "OnnxRuntime.build", "after"),
    "measured-not-judged": Point("pipeline.run.store", "Store._named", "after", 6),
    "verdict-unnamed": Point("pipeline.run.store", "Store._named", "before", 7),
}
"""Points at which a run is killed."""

SIGNALS = {
    "sigterm": Point("pipeline.training.resume", "save", "after", 2, signal.SIGTERM),
    "sigint": Point("pipeline.training.resume", "save", "after", 2, signal.SIGINT),
}


def hook(point: Point) -> None:
    """Have the process signal itself at a point."""
    owner: Any = importlib.import_module(point.module)
    *path, name = point.function.split(".")
    for part in path:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), [0]

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if point.when == "before" and calls[0] == point.nth:
            os.kill(os.getpid(), point.signal)
        result = original(*args, **kwargs)
        if point.when == "after" and calls[0] == point.nth:
            os.kill(os.getpid(), point.signal)
        return result

    setattr(owner, name, wrapped)


def limit_files(size: str) -> None:
    """Files may not grow beyond so many bytes: writing more is refused, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.RLIM_INFINITY))


def fill_disk(nth: int) -> None:
    """From the nth file on nothing can be written any more: all that is free is what the run's lock file holds."""
    from pipeline import alive

    original, calls = os.fsync, [0]

    def fsync(handle: int) -> None:
        calls[0] += 1
        if calls[0] >= nth and any(os.fstat(held).st_blocks for held in alive._handles):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(handle)

    os.fsync = fsync


def obey_permissions() -> None:
    """Give up root's right to write where the mode forbids it (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER)."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    if libc.capget(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    for capability in (1, 2, 3):
        data[0] &= ~(1 << capability)
    if libc.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def prepare(fault: str) -> None:
    """Set up a fault: `none`, a point, a signal, `file-size=N`, `full-disk=N`, `permissions`, `raise`."""
    kind, _, value = fault.partition("=")
    if kind in POINTS or kind in SIGNALS:
        hook((POINTS | SIGNALS)[kind])
    elif kind == "file-size":
        limit_files(value)
    elif kind == "full-disk":
        fill_disk(int(value))
    elif kind == "permissions":
        obey_permissions()
    elif kind == "raise":
        import pipeline.sparsity

        def broken(*args: Any, **kwargs: Any) -> Any:
            raise ZeroDivisionError("by a fault")

        pipeline.sparsity.propose = broken
    elif kind != "none":
        raise SystemExit(f"no fault {fault}")


def run(words: list[str]) -> None:
    """Run the command line with a fault; does not return."""
    from pipeline.cli import main

    prepare(words[0])
    sys.argv = ["sparsegate", *words[1:]]
    main()


def serve() -> None:
    """Answer lines of `[output file, fault, arg...]` with the exit status, negative for a signal."""
    for name in ("torch", "lightning_fabric", "torch.onnx", "onnxscript", "onnxruntime", "pipeline.run.chain", "pipeline.recipe.load"):
        importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        output, *words = json.loads(line)
        child = os.fork()
        if child == 0:
            descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            code = 1
            try:
                run(words)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            except BaseException:  # noqa: BLE001 (what would be a traceback is what the tests look for)
                import traceback

                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else run(sys.argv[1:])
