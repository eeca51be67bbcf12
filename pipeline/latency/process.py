"""Arms that need a process of their own: another environment, container or machine, reached by a command."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pipeline.errors import StageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_BYTES = 256 << 20
"""Of a command's output."""
EXPECTED = 'its last line must be like {"host_latency": [1.2, 1.3]}'
SHOWN = 500
"""Characters of what a failed command said."""


class CommandSampler:
    """Runs a command once per block; it prints one JSON object of metric -> list of ms on its last line.

    Args:
        command: Words of the command; `{count}` in a word becomes the number of inferences.
        timeout_s: Longest run of one block.
    """

    level = "process"

    def __init__(self, command: Sequence[str], *, timeout_s: float = 600.0) -> None:
        self.command = list(command)
        self.timeout_s = timeout_s

    def block(self, count: int) -> Mapping[str, NDArray[np.float64]]:
        """Start the command and read its times.

        Raises:
            StageError: it cannot be started, runs too long, fails, or prints no such line.
        """
        words = [word.replace("{count}", str(count)) for word in self.command]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.timeout_s, check=False)
        except subprocess.TimeoutExpired:
            raise self._error(f"ran longer than {self.timeout_s:g} s") from None
        except OSError as error:
            raise self._error(f"cannot be started: {error.strerror}") from None
        if done.returncode:
            raise self._error(f"ended with {done.returncode}: {done.stderr[-SHOWN:].decode(errors='replace').strip()}")
        if len(done.stdout) > LARGEST_BYTES:
            raise self._error(f"printed more than {LARGEST_BYTES >> 20} MiB")
        line = done.stdout.strip().rpartition(b"\n")[2]
        try:
            times = msgspec.json.decode(line, type=dict[str, list[float]])
        except msgspec.MsgspecError as error:
            raise self._error(f"printed no times on its last line ({error})") from None
        return {metric: np.array(values, np.float64) for metric, values in times.items()}

    def _error(self, what: str) -> StageError:
        return StageError(f"the timing command {what}", where=" ".join(self.command), hint=EXPECTED)
