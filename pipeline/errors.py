"""Errors that a user meets: each says what is wrong, where, and what to do next."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns to its caller."""

    PASS = 0
    FAIL = 1
    """A rule of the gate, or a `--require`, fails."""
    USAGE = 2
    """Bad input or usage."""
    UNDECIDED = 3
    """Inconclusive, unknown or disputed where a decision was required."""
    STAGE = 4
    """A stage failed."""


class SparsegateError(Exception):
    """Root of every error that sparsegate raises on purpose.

    Args:
        what: One sentence: what is wrong.
        where: `file:line:column`, a layer's name, a stage: the place to look at.
        hint: What to do next.
    """

    exit_code: ExitCode = ExitCode.STAGE

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  next: {self.hint}" if self.hint else head


class InputError(SparsegateError):
    """The user's input (a file, a recipe, an option) cannot be used."""

    exit_code = ExitCode.USAGE


class MissingPackageError(InputError):
    """An optional package is not installed; the hint names the extra that brings it."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}, which is not installed", hint=f"pip install 'sparsegate[{extra}]'")


class StageError(SparsegateError):
    """A stage could not do its work on input that was well formed."""

    exit_code = ExitCode.STAGE


class TamperedError(StageError):
    """Bytes on disk no longer match the digest under which they were recorded."""
