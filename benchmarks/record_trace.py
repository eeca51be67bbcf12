"""Records latency traces of an ONNX model on the onnxruntime backend, for the scorecard's replayed processes.

python benchmarks/record_trace.py MODEL.onnx --seconds 60 --out benchmarks/data/onnxruntime_trace.npz
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from pipeline import builders
from pipeline.builders.base import ArmRequest

BLOCK = 100
NEIGHBOURS = {"quiet": 0, "loaded": 1, "crowded": 4}
"""Trace -> processes that load a core on and off meanwhile."""


def loader(stop, seed: int) -> None:
    """Load one core on and off."""
    rng = np.random.default_rng(seed)
    while not stop.is_set():
        end = time.perf_counter() + rng.exponential(0.5)
        while time.perf_counter() < end:
            sum(range(10_000))
        time.sleep(rng.exponential(0.5))


def record(model: Path, batch: int, seconds: float) -> np.ndarray:
    """Latencies in ms, back to back for so many seconds."""
    backend = builders.backend("onnxruntime", {"threads": 1})
    with tempfile.TemporaryDirectory() as folder:
        request = ArmRequest(arm="a", repeat=1, onnx=model, onnx_arm="a", sparse_weights=False, precision="fp32", profiles=[])
        engine = backend.build(request, Path(folder))
        session = backend.load(engine, Path(folder))
        feeds = {"x": np.random.default_rng(0).standard_normal((batch, 1, 8, 8)).astype(np.float32)}
        sampler = session.sampler(feeds)
        sampler.block(200)
        blocks, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end:
            blocks.append(sampler.block(BLOCK)["host_latency"])
        session.close()
    return np.concatenate(blocks)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    traces = {}
    for name, count in NEIGHBOURS.items():
        stop = multiprocessing.Event()
        neighbours = [multiprocessing.Process(target=loader, args=(stop, seed), daemon=True) for seed in range(count)]
        for neighbour in neighbours:
            neighbour.start()
        ms = record(args.model, args.batch, args.seconds)
        stop.set()
        for neighbour in neighbours:
            neighbour.join()
        traces[name] = np.round(ms / np.median(ms), 4).astype(np.float32)
    np.savez_compressed(args.out, **traces)
    for name, trace in traces.items():
        print(f"{name}: {len(trace)} samples, CV {trace.std() / trace.mean():.3f}, p99 / p50 {np.quantile(trace, 0.99):.2f}")


if __name__ == "__main__":
    main()
