"""One logger for the whole process: TensorRT keeps the first one it is given, and complains about a second."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import IO, Any

LETTERS = {"INTERNAL_ERROR": "F", "ERROR": "E", "WARNING": "W", "INFO": "I", "VERBOSE": "V"}
"""TensorRT's severity -> the letter that its own Python logger prints."""
KEPT_ERRORS = 20


class LogFile:
    """Writes TensorRT's messages with their own severity and words, each line flushed: a crash keeps what was said.

    The form is that of TensorRT's Python logger (`[MM/DD/YYYY-HH:MM:SS] [TRT] [I] message`); sparsegate's own lines
    lack `[TRT]`.
    """

    def __init__(self, path: Path, *, verbose: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.verbose = verbose
        self.errors: list[str] = []
        self._lock = threading.Lock()
        self._file: IO[str] = path.open("w", encoding="utf-8", errors="backslashreplace")

    def trt(self, severity: str, message: str) -> None:
        """One message of TensorRT, by the name of its severity."""
        letter = LETTERS.get(severity, "I")
        if letter in "FE":
            self.errors = [*self.errors, message][-KEPT_ERRORS:]
        if letter != "V" or self.verbose:
            self._write(f"[TRT] [{letter}] {message}")

    def own(self, message: str, letter: str = "I") -> None:
        """One line of sparsegate itself."""
        self._write(f"[{letter}] {message}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, text: str) -> None:
        with self._lock:  # TensorRT logs from several threads
            self._file.write(f"[{time.strftime('%m/%d/%Y-%H:%M:%S')}] {text}\n")
            self._file.flush()


_LOGGERS: dict[str, Any] = {}


def process_logger(trt: Any, log: LogFile | None = None) -> Any:
    """The process's one ILogger of the library `trt`; messages go to `log` from now on (nowhere without one)."""
    logger = _LOGGERS.get(trt.__name__)
    if logger is None:
        logger = _LOGGERS[trt.__name__] = _logger_class(trt)()
    logger.sink = log
    return logger


def _logger_class(trt: Any) -> Any:
    class RawLogger(trt.ILogger):  # type: ignore[misc]  # the base is known only at run time
        def __init__(self) -> None:
            trt.ILogger.__init__(self)  # pybind11 refuses super().__init__ of a cooperative class
            self.sink: LogFile | None = None

        def log(self, severity: Any, msg: str) -> None:
            if self.sink is not None:
                self.sink.trt(severity.name, msg)

    return RawLogger
