"""Reading .npz files that somebody else may have made: bounded in size, without pickles, one clear error."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@contextmanager
def opened(path: Path, what: str, most_bytes: int) -> Iterator[Mapping[str, Any]]:
    """The arrays of a file by name, read when asked for; what goes wrong while they are read and decoded is an error of the file.

    Args:
        path: The .npz file.
        what: What it holds, such as `samples`: for the errors.
        most_bytes: How large it may be unpacked.

    Raises:
        InputError: not such a file, too large, damaged, or something in it is missing.
    """
    import numpy as np

    try:
        with zipfile.ZipFile(path) as archive:
            if sum(item.file_size for item in archive.infolist()) > most_bytes:
                raise InputError(f"{what} would unpack to more than {most_bytes >> 30} GiB", where=str(path), hint="measure again")
        with np.load(path, allow_pickle=False) as data:
            yield data
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        raise InputError(f"not a readable {what} file ({error})", where=str(path), hint="measure again") from None
