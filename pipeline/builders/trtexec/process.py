"""One run of trtexec: its log, its version, and whether PASSED can be believed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from pipeline.builders.trtexec.target import Target
from pipeline.builders.versions import banner_version
from pipeline.errors import InputError, StageError

BANNER = re.compile(r"&&&& RUNNING TensorRT\.trtexec \[TensorRT (v\d+)\](?: \[\w+\])?")
STAND_IN = "sparsegate stand-in"
"""What a replacement of trtexec prints, so that nothing made from it can pass for a measurement."""
SEVERE = re.compile(r"^(?:\[[^\]]*\] )?\[[EF]\] (?:\[TRT\] )?(.*)$", re.M)
PASSED_ALL_THE_SAME: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "tactics were skipped for lack of memory",
        re.compile(r"insuff?icient memory|Device memory is insufficient|not have sufficient workspace"),
    ),
    ("tactics were skipped after an error", re.compile(r"Skipping tactic .* due to (?:exception|Myelin error)")),
)
"""What trtexec prints PASSED after: kept as notes of the engine."""
UNTRUSTED_TIMES: tuple[re.Pattern[str], ...] = (
    re.compile(r"\[W\] (\* Throughput may be bound by .*?) and the GPU may be under-utilized"),
    re.compile(r"\[W\] (\* GPU compute time is unstable.*)"),
    re.compile(r"\[W\] (?:\[TRT\] )?(Using an engine plan file across different models of devices.*)"),
    re.compile(r"\[W\] (Dynamic dimensions required for input.*)"),
)
"""trtexec's own doubts about its times."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A trtexec that ended well."""

    version: str
    command: list[str]
    text: str
    """The log of this run."""

    @property
    def simulated(self) -> str | None:
        """What stood in for trtexec, if anything did."""
        line = next((line for line in self.text.splitlines() if STAND_IN in line), None)
        return line[line.index(STAND_IN) :].strip() if line else None

    def notes(self) -> list[str]:
        """What PASSED hides."""
        return [
            f"{words} in {count} lines of the log; trtexec says PASSED all the same"
            for words, form in PASSED_ALL_THE_SAME
            if (count := len(form.findall(self.text)))
        ]

    def doubts(self) -> list[str]:
        """What trtexec itself says against its times."""
        return list(dict.fromkeys(found.group(1).strip() for form in UNTRUSTED_TIMES for found in form.finditer(self.text)))


def run(
    target: Target,
    command: Sequence[str],
    log: Path,
    *,
    timeout_s: float,
    pid_name: str,
    heard: Callable[[float, str], None] = lambda elapsed, line: None,
) -> Finished:
    """Run trtexec with its output in `log`.

    Raises:
        InputError: it cannot be started.
        StageError: it ran too long, failed, was killed, or ended without PASSED.
    """
    with log.open("wb") as file:
        status = target.watch(command, file, timeout_s=timeout_s, pid_name=pid_name, heard=heard)
    text = log.read_text(encoding="utf-8", errors="replace")
    if status in (126, 127) and BANNER.search(text) is None:
        raise _not_started(target, text)
    if status != 0 or "&&&& PASSED" not in text:
        raise StageError(_why(status, text), where=str(log), hint=f"the log is whole; the command was {shlex.join(command)[:300]}")
    return Finished(version=version_of(text, str(log)), command=list(command), text=text)


def _why(status: int, text: str) -> str:
    """One sentence on a trtexec that did not end well."""
    errors = [line.strip() for line in SEVERE.findall(text) if line.strip()]
    if errors:
        return f"trtexec failed (status {status}): {'; '.join(errors[-3:])}"
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
    how = (
        f"was ended by signal {-status}"
        if status < 0
        else f"was ended by signal {status - 128}"
        if status > 128
        else f"ended with status {status}"
    )
    return f"trtexec {how} and said neither PASSED nor why; last line: {last[-200:]}"


def _not_started(target: Target, text: str) -> InputError:
    said = text.strip()[-200:]
    return InputError(f"trtexec cannot be started on {target.name}: {said}", where="build.trtexec", hint="give its full path")


def version_of(text: str, where: str) -> str:
    """TensorRT's version from the banner.

    Raises:
        StageError: there is none: this is no trtexec.
    """
    found = BANNER.search(text)
    if found is None:
        raise StageError("no banner of trtexec in its output", where=where, hint="is build.trtexec really trtexec?")
    return banner_version(found.group(1))


def ask_version(target: Target, trtexec: str) -> tuple[str, str | None]:
    """(version, what stands in for trtexec if anything) of the trtexec on the target: it prints its banner before its help.

    Raises:
        InputError: it cannot be started.
        StageError: it prints no banner.
    """
    answer = target.run([trtexec, "--help"])
    text = (answer.stdout + answer.stderr).decode(errors="replace")
    if answer.returncode in (126, 127) and BANNER.search(text) is None:
        raise _not_started(target, text)
    said = text.strip()[-200:] or "silence"
    if answer.returncode != 0 and BANNER.search(text) is None:
        raise StageError(
            f"no trtexec answers (status {answer.returncode}): {said}", where=target.name, hint="does the prefix reach the target by hand?"
        )
    version = version_of(text, f"{trtexec} --help on {target.name}: {said}")
    return version, Finished(version=version, command=[], text=text).simulated
