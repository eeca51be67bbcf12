"""Samples of an experiment whose blocks hold one sample each."""

from __future__ import annotations

import numpy as np

from pipeline.latency import Samples, Sampling


def one_sample_blocks(ms: np.ndarray, arms: tuple[str, ...], *, shape: str, metric: str, sampling: Sampling) -> Samples:
    """From times in ms [rounds, arms]; a block of one sample has its median for all samples."""
    round_, arm = np.indices(ms.shape)
    return Samples(
        arms=arms,
        shapes=(shape,),
        metrics=(metric,),
        arm=arm.ravel().astype(np.int16),
        shape=np.zeros(ms.size, np.int16),
        metric=np.zeros(ms.size, np.int16),
        round=round_.ravel().astype(np.int32),
        block=np.arange(ms.size, dtype=np.int32),
        start_ns=np.zeros(ms.size, np.int64),
        ms=ms.ravel(),
        sampling={shape: sampling},
    )
