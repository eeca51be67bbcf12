"""The machine that runs trtexec: commands, files to it and from it, and an end to what runs too long."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from pipeline.builders.trtexec.hops import argv
from pipeline.errors import InputError, StageError
from pipeline.records.io import sha256_file

SHORT_S = 60
"""Time for a command that only looks or copies a little."""
BYTES_PER_S = 250_000
"""Slowest transfer that is waited for."""
GRACE_S = 5.0
TICK_S = 0.25
IN_BUS_ORDER = ("env", "CUDA_DEVICE_ORDER=PCI_BUS_ID")
"""Before what uses CUDA: its numbers of GPUs are then nvidia-smi's, which the facts and the clocks are read by."""
TO_FILE = 'mkdir -p "$(dirname "$1")" && cat > "$1.part" && mv "$1.part" "$1"'
REMEMBER_PID = 'mkdir -p "$(dirname "$1")" && echo $$ > "$1" && shift && exec "$@"'
END_PID = 'kill -"$2" "$(cat "$1")" 2>/dev/null; true'


class Target:
    """Runs commands behind a prefix; with no prefix, on this machine and without copies.

    Args:
        prefix: What reaches the target, word by word.
        folder: An absolute folder on the target to work in.
    """

    def __init__(self, prefix: Sequence[str], folder: str) -> None:
        self.prefix = list(prefix)
        self.local = not self.prefix
        self._folder = PurePosixPath(folder)
        self._pushed: dict[str, str] = {}

    @property
    def name(self) -> str:
        """For messages."""
        return shlex.join(self.prefix) if self.prefix else "this machine"

    def path(self, name: str) -> str:
        """A file of the working folder on the target; `name` is one of ours."""
        return str(self._folder / name)

    def run(self, command: Sequence[str], *, data: bytes = b"", timeout_s: float = SHORT_S) -> subprocess.CompletedProcess[bytes]:
        """Run a short command with `data` on its standard input.

        Raises:
            InputError: the prefix's program does not exist.
            StageError: no end within the time.
        """
        words = argv(self.prefix, command)
        try:
            return subprocess.run(words, input=data, capture_output=True, timeout=timeout_s, check=False, start_new_session=True)
        except FileNotFoundError:
            raise self._not_there(words[0]) from None
        except subprocess.TimeoutExpired:
            raise StageError(f"no answer within {timeout_s:.0f} s: {shlex.join(command)[:200]}", where=self.name) from None

    def push(self, file: Path, name: str) -> str:
        """Bring a file to the target under `name`; returns its path there. On this machine it stays where it is.

        Raises:
            StageError: what arrived is not what was sent (`docker exec` without `-i` sends nothing).
        """
        if self.local:
            return str(file.resolve())
        digest = sha256_file(file)
        place = self.path(name)
        if self._pushed.get(place) == digest:
            return place
        limit = SHORT_S + file.stat().st_size / BYTES_PER_S
        if self.digest(place, limit) == digest:
            self._pushed[place] = digest
            return place
        sent = self.run(["sh", "-c", TO_FILE, "sh", place], data=file.read_bytes(), timeout_s=limit)
        if self.digest(place, limit) != digest:
            why = sent.stderr.decode(errors="replace").strip()[-300:]
            raise StageError(
                f"{file.name} did not arrive whole{': ' + why if why else ''}",
                where=self.name,
                hint="docker, podman and kubectl exec need -i to pass a file on; is the folder writable and the disk not full?",
            )
        self._pushed[place] = digest
        return place

    def digest(self, place: str, timeout_s: float = SHORT_S) -> str | None:
        """sha256 of a file of the target; None when there is none."""
        words = self.run(["sha256sum", place], timeout_s=timeout_s).stdout.split()
        return words[0].lstrip(b"\\").decode() if words else None  # sha256sum marks an escaped name with a backslash

    def pull(self, place: str, file: Path) -> bool:
        """Fetch a file of the target; False when there is none."""
        if self.local and Path(place).resolve() == file.resolve():
            return file.is_file()
        size = self.run(["sh", "-c", 'wc -c < "$1"', "sh", place]).stdout.strip()
        if not size.isdigit():
            return False
        answer = self.run(["cat", place], timeout_s=SHORT_S + int(size) / BYTES_PER_S)
        if answer.returncode != 0 or len(answer.stdout) != int(size):
            raise StageError(f"{place} came back with {len(answer.stdout)} of {int(size)} bytes", where=self.name, hint="try again")
        file.write_bytes(answer.stdout)
        return True

    def remove(self, places: Sequence[str]) -> None:
        """Remove files of the target; one that is not there is none."""
        self.run(["rm", "-f", "--", *places])

    def watch(self, command: Sequence[str], log: IO[bytes], *, timeout_s: float, pid_name: str, heard: Callable[[float, str], None]) -> int:
        """Run a long command, its output going to `log` as it comes; ends it when time is up or this process is interrupted.

        Args:
            command: What to run on the target.
            log: Receives standard output and error as they arrive.
            timeout_s: Longest time.
            pid_name: Name of the file on the target that holds the command's process id while it runs.
            heard: Called with (elapsed seconds, last line) now and then.

        Returns:
            The exit status; negative for a signal.

        Raises:
            InputError: the program does not exist.
            StageError: it ran too long and was ended.
        """
        line = list(command) if self.local else ["sh", "-c", REMEMBER_PID, "sh", self.path(pid_name), *command]
        words = argv(self.prefix, line)
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
            )
        except (FileNotFoundError, PermissionError):
            raise self._not_there(words[0]) from None
        try:
            self._listen(process, log, timeout_s, heard)
        except BaseException:
            self._end(process, pid_name)
            raise
        return process.returncode

    def _listen(self, process: subprocess.Popen[bytes], log: IO[bytes], timeout_s: float, heard: Callable[[float, str], None]) -> None:
        assert process.stdout is not None  # it was opened as a pipe
        started, last = time.monotonic(), ""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                elapsed = time.monotonic() - started
                if elapsed > timeout_s:
                    raise StageError(
                        f"no end within {timeout_s:.0f} s; last line: {last or 'none'}", where=self.name, hint="raise build.timeout_s"
                    )
                if selector.select(TICK_S):
                    chunk = os.read(process.stdout.fileno(), 1 << 16)
                    if not chunk:
                        break
                    log.write(chunk)
                    log.flush()
                    last = next((text for text in reversed(chunk.decode(errors="replace").splitlines()) if text.strip()), last)[-100:]
                heard(elapsed, last)
        process.stdout.close()
        process.wait()

    def _end(self, process: subprocess.Popen[bytes], pid_name: str) -> None:
        """End the command on the target too: ending ssh or docker alone leaves it running there."""
        for name, number in (("TERM", signal.SIGTERM), ("KILL", signal.SIGKILL)):
            if not self.local:
                self.run(["sh", "-c", END_PID, "sh", self.path(pid_name), name])
            if process.poll() is None:
                os.killpg(process.pid, number)
            try:
                process.wait(GRACE_S)
                if self.local:
                    break
            except subprocess.TimeoutExpired:
                continue
        if process.stdout is not None:
            process.stdout.close()

    def _not_there(self, program: str) -> InputError:
        return InputError(
            f"cannot start {program!r}: no such program, or it may not be run", where="build.command" if self.prefix else "build.trtexec"
        )
