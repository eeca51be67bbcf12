"""Channel permutation: how much of the lost magnitude it regains, by time and size.

    python benchmarks/bench_permutation.py            # asserts the targets
    python benchmarks/bench_permutation.py --curve    # and prints what a second and ten find, and how it scales

The regained share is (kept - kept by default 2:4) / (kept by unstructured 50 % - kept by default 2:4), for matrices of
independent random numbers, whose columns have nothing in common that an order could use. Times are processor time of this
one thread: what else the machine does is left out.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from harness import expect

from pipeline.sparsity.permutation.search import Found, search


def uniform(seed: int, rows: int = 128, columns: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, columns), dtype=np.float32)


def normal(seed: int, rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)


def timed(matrix: np.ndarray, seconds: float, seed: int = 0) -> tuple[Found, float]:
    """The nominal work of so many seconds, however long the clock says, and the processor time of it."""
    began = time.process_time()
    found = search(matrix, seconds=seconds, seed=seed, limit=60 * seconds)
    return found, time.process_time() - began


def mean_regained(seconds: float, seeds: int) -> tuple[float, float, float]:
    found = [timed(uniform(seed), seconds, seed) for seed in range(seeds)]
    shares = [one.regained for one, _ in found]
    return statistics.mean(shares), statistics.stdev(shares), statistics.mean(took for _, took in found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--curve", action="store_true", help="also print longer searches and larger matrices")
    options = parser.parse_args()
    search(uniform(0), seconds=0.01)  # compiles

    mean, spread, took = mean_regained(0.08, 20)
    figure = f"{mean:.2%} (sd {spread:.2%}) in {took:.3f} s"
    expect("64 columns x 128 rows, uniform, mean of 20 seeds", mean >= 0.33 and took <= 0.1, figure, ">= 33 % within 0.1 s")
    large, took = timed(normal(0, 512, 2048), 13)
    expect(
        "2048 columns x 512 rows, normal",
        large.regained >= 0.24 and took < 20,
        f"{large.regained:.2%} in {took:.1f} s",
        ">= 24 % in under 20 s",
    )
    if options.curve:
        for seconds, seeds in ((0.003, 20), (0.01, 20), (0.03, 20), (0.1, 20), (0.3, 20), (1.0, 10), (10.0, 3)):
            mean, spread, took = mean_regained(seconds, seeds)
            print(f"curve 64 x 128: {seconds:6.3f} s: {mean:.2%} (sd {spread:.2%}, {seeds} seeds; took {took:.3f} s)", flush=True)
        for size in (256, 512, 1024, 2048, 4096):
            for seconds in (1.0, 10.0):
                found, took = timed(normal(0, size, size), seconds)
                print(f"scale {size} x {size}, normal: {seconds:4.1f} s: {found.regained:.2%} (took {took:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
