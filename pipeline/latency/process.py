"""Arms that need a process of their own: another environment, container or machine, reached by a command.

The command prints one JSON object of metric -> list of ms on a line for every block. With `{count}` among its words it is started
for each block; without, it stays alive and reads the number of inferences of each block from its input, a line each.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

import msgspec
import numpy as np

from pipeline.errors import StageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = Mapping[str, NDArray[np.float64]]

COUNT = "{count}"
LARGEST_BYTES = 256 << 20
"""Of one answer."""
EXPECTED = 'for each block it must print a line like {"host_latency": [1.2, 1.3]}'
SHOWN = 500
"""Characters of what a failed command said."""


def command_sampler(command: Sequence[str], *, timeout_s: float = 600.0) -> OneShot | Live:
    """The sampler for a command: started per block where it takes `{count}`, kept alive where it does not.

    Args:
        command: Words of the command.
        timeout_s: Longest time of one block.
    """
    return OneShot(command, timeout_s) if any(COUNT in word for word in command) else Live(command, timeout_s)


class OneShot:
    """Starts the command for every block."""

    level = "process"

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        self.command = list(command)
        self.timeout_s = timeout_s

    def block(self, count: int) -> Times:
        """Start the command and read its times.

        Raises:
            StageError: it cannot be started, runs too long, fails, or prints no such line.
        """
        words = [word.replace(COUNT, str(count)) for word in self.command]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.timeout_s, check=False)
        except subprocess.TimeoutExpired:
            raise _error(self.command, f"ran longer than {self.timeout_s:g} s") from None
        except OSError as error:
            raise _error(self.command, f"cannot be started: {error.strerror}") from None
        if done.returncode:
            raise _error(self.command, f"ended with {done.returncode}: {_shown(done.stderr)}")
        return _times(self.command, done.stdout.strip().rpartition(b"\n")[2])

    def close(self) -> None:
        """Nothing is left running."""


class Live:
    """Keeps one process of the command, until it is renewed or closed."""

    level = "process"

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        self.command = list(command)
        self.timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    def renew(self) -> None:
        """End the process and start another.

        Raises:
            StageError: it cannot be started.
        """
        self.close()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process it listens to)
        try:
            self._process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said)
        except OSError as error:
            raise _error(self.command, f"cannot be started: {error.strerror}") from None

    def block(self, count: int) -> Times:
        """Ask the process for one block.

        Raises:
            StageError: it takes too long, has ended, or answers with no such line.
        """
        if self._process is None:
            self.renew()
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        watchdog = threading.Timer(self.timeout_s, process.kill)
        watchdog.start()
        try:
            process.stdin.write(f"{count}\n".encode())
            process.stdin.flush()
            line = process.stdout.readline(LARGEST_BYTES + 1)
        except OSError:
            line = b""
        finally:
            watchdog.cancel()
        if not line.endswith(b"\n"):
            said = self._last_words()
            self.close()
            raise _error(self.command, f"ended, or gave no answer within {self.timeout_s:g} s: {said}")
        return _times(self.command, line)

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # what it was told last never arrived
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        if self._said is not None:
            self._said.close()
            self._said = None

    def _last_words(self) -> str:
        if self._said is None:
            return ""
        self._said.seek(0)
        return _shown(self._said.read(LARGEST_BYTES))


def _times(command: Sequence[str], line: bytes) -> Times:
    if len(line) > LARGEST_BYTES:
        raise _error(command, f"printed more than {LARGEST_BYTES >> 20} MiB")
    try:
        times = msgspec.json.decode(line, type=dict[str, list[float]])
    except msgspec.MsgspecError as error:
        raise _error(command, f"printed no times ({error})") from None
    return {metric: np.array(values, np.float64) for metric, values in times.items()}


def _shown(said: bytes) -> str:
    return said[-SHOWN:].decode(errors="replace").strip() or "it said nothing"


def _error(command: Sequence[str], what: str) -> StageError:
    return StageError(f"the timing command {what}", where=" ".join(command), hint=EXPECTED)
