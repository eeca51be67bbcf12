"""What the system refused, in words: why a stage could not write or run, and what to do about it."""

from __future__ import annotations

from functools import partial

from pipeline.errors import SparsegateError, StageError
from pipeline.paths import WITH_DEBUG, refused

AGAIN = ", then give the same command: finished stages are kept, and training goes on from its last epoch"
refusal = partial(refused, again=AGAIN, place="--workspace")
"""As `pipeline.paths.refused`, of what a run does in its workspace."""


def failure_of(stage: str, error: Exception) -> SparsegateError:
    """The error that a user sees when a stage raised `error`: itself where it was raised on purpose."""
    if isinstance(error, SparsegateError):
        return error
    if (cause := _refusal(error)) is not None:
        file = cause.filename2 or cause.filename
        return refusal(cause, f"stage {stage} stopped", where=f"{stage}: {file}" if file else stage)
    if isinstance(error, MemoryError):
        return StageError(f"stage {stage} ran out of memory", where=stage, hint=f"free memory, or lower batch_size{AGAIN}")
    return StageError(f"stage {stage} failed: {type(error).__name__}: {error}", where=stage, hint=WITH_DEBUG)


def _refusal(error: BaseException | None) -> OSError | None:
    """The system's own error behind an exception: libraries wrap it in theirs."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, OSError) and error.errno:
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
