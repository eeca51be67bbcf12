"""This side of `runner.py`: batches go to the target and predictions come back, through one process that keeps the engine loaded."""

from __future__ import annotations

import io
import select
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.builders.tensorrt.dtypes import numpy_dtype
from pipeline.builders.trtexec.hops import argv
from pipeline.builders.trtexec.target import IN_BUS_ORDER, Target
from pipeline.errors import StageError

if TYPE_CHECKING:
    import numpy as np

RUNNER = Path(__file__).with_name("runner.py")
CHUNK_BYTES = 1 << 20
CLOSE_S = 10
HINT = "build.target_python: a Python with tensorrt and numpy on the target"


class RemoteRunner:
    """One engine on the target, answering batch after batch.

    Args:
        target: The machine.
        python: Its Python, which has tensorrt and numpy.
        plan: The plan's path there.
        device: Number of the GPU there.
        timeout_s: Longest time for loading, and for one batch.
    """

    def __init__(self, target: Target, python: str, plan: str, device: int, timeout_s: float) -> None:
        self._where = f"{python} on {target.name}"
        self._timeout_s = timeout_s
        script = target.push(RUNNER, "sparsegate-runner.py")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            argv(target.prefix, [*IN_BUS_ORDER, python, script, plan, str(device)]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )
        try:
            ready = self._receive()
        except BaseException:
            self.close()
            raise
        self.tensorrt = str(ready["__ready__"])
        self._bfloat16 = {str(name) for name in ready["__bfloat16__"]}

    def run(self, feeds: Mapping[str, np.ndarray], profile: int) -> dict[str, np.ndarray]:
        """Run one batch; outputs by name.

        Raises:
            StageError: the target refuses or fails; says why in its own words.
        """
        import numpy as np

        sent: dict[str, Any] = {name: array.view(np.uint16) if name in self._bfloat16 else array for name, array in feeds.items()}
        buffer = io.BytesIO()
        np.savez(buffer, **{**sent, "__profile__": np.array(profile)})
        data = buffer.getvalue()
        pipe = self._process.stdin
        assert pipe is not None  # it was opened as a pipe
        try:
            pipe.write(struct.pack("<Q", len(data)) + data)
            pipe.flush()
        except OSError:
            raise self._gone() from None
        answer = self._receive()
        return {name: array.view(numpy_dtype("bfloat16")) if name in self._bfloat16 else array for name, array in answer.items()}

    def close(self) -> None:
        """End the process: it stops when its input ends."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except OSError:  # unsent bytes for a process that is gone
                    continue
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def _receive(self) -> dict[str, np.ndarray]:
        import numpy as np

        size = struct.unpack("<Q", self._read(8))[0]
        with np.load(io.BytesIO(self._read(size)), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        if "__error__" in arrays:
            raise StageError(
                f"the runner says: {arrays['__error__']}", where=self._where, hint="build.target_python: a Python with tensorrt and numpy"
            )
        return arrays

    def _read(self, count: int) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None  # it was opened as a pipe
        data = bytearray()
        while len(data) < count:
            if not select.select([pipe], [], [], self._timeout_s)[0]:
                raise StageError(f"no answer within {self._timeout_s:.0f} s", where=self._where, hint="raise build.timeout_s")
            chunk = pipe.read1(min(CHUNK_BYTES, count - len(data)))  # type: ignore[attr-defined]  # a buffered reader
            if not chunk:
                raise self._gone()
            data += chunk
        return bytes(data)

    def _gone(self) -> StageError:
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip()[-300:]
        return StageError(f"the runner ended: {said or 'without a word'}", where=self._where, hint=HINT)
