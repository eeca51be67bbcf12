"""The same seed and threads give the same weights: global state set for a block and put back after it."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager


def derived(seed: int, *parts: str | int) -> int:
    """A seed below 2**32 for one purpose: unrelated to that of any other purpose or seed."""
    text = "/".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@contextmanager
def repeatable(threads: int | None, *, cuda: bool = False) -> Iterator[None]:
    """Fix the thread count, and on a GPU deterministic kernels, within the block; all generators and settings are put back.

    On a GPU, operators that have no deterministic kernel warn (torch names them) and may differ in the last bits from run to run.
    """
    import numpy as np
    import torch

    before = torch.get_num_threads()
    python, arrays = random.getstate(), np.random.get_state()
    cudnn = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    strict = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    if cuda:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it starts; without it sums may differ
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if cuda else []):
        try:
            if threads is not None:
                torch.set_num_threads(threads)
            if cuda:
                torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
                torch.use_deterministic_algorithms(True, warn_only=True)
            yield
        finally:
            torch.set_num_threads(before)
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = cudnn
            torch.use_deterministic_algorithms(strict[0], warn_only=strict[1])
            random.setstate(python)
            np.random.set_state(arrays)


def reseed(seed: int) -> None:
    """Seed every global generator: dropout, and whatever random the user's code draws from, then depends on `seed` alone."""
    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
