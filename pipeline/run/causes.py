"""What the system refused, in words: why a stage could not write or run, and what to do about it."""

from __future__ import annotations

import errno

from pipeline.errors import SparsegateError, StageError

AGAIN = "then give the same command: finished stages are kept, and training goes on from its last epoch"
WITH_DEBUG = "the same command with --debug shows where"
HINTS: dict[int, str] = {
    errno.ENOSPC: f"free space on the disk (sparsegate runs prune), {AGAIN}",
    errno.EDQUOT: f"raise the quota or remove files (sparsegate runs prune), {AGAIN}",
    errno.EFBIG: f"raise the limit on file sizes (ulimit -f), {AGAIN}",
    errno.EACCES: "make the folder writable, or choose another --workspace",
    errno.EPERM: "make the folder writable, or choose another --workspace",
    errno.EROFS: "choose a --workspace on a disk that is not read-only",
    errno.EMFILE: f"raise the limit on open files (ulimit -n), {AGAIN}",
    errno.ENOMEM: f"free memory, or lower batch_size, {AGAIN}",
    errno.EIO: "the disk reports errors: choose another --workspace",
}
"""Error number -> next step."""


def failure_of(stage: str, error: Exception) -> SparsegateError:
    """The error that a user sees when a stage raised `error`: itself where it was raised on purpose."""
    if isinstance(error, SparsegateError):
        return error
    refused = _refusal(error)
    if refused is not None:
        where = f"{stage}: {refused.filename}" if refused.filename else stage
        hint = HINTS.get(refused.errno or 0, WITH_DEBUG)
        return StageError(f"stage {stage} stopped: {refused.strerror or refused}", where=where, hint=hint)
    if isinstance(error, MemoryError):
        return StageError(f"stage {stage} ran out of memory", where=stage, hint=HINTS[errno.ENOMEM])
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
