"""Channel permutation: how much of the lost magnitude it regains, by time and size.

    python benchmarks/bench_permutation.py            # asserts the targets
    python benchmarks/bench_permutation.py --curve    # and prints what a second and ten find, and how it scales

The regained share is (kept - kept by default 2:4) / (kept by unstructured 50 % - kept by default 2:4), for matrices of
independent random numbers, whose columns have nothing in common that an order could use.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from harness import expect

from pipeline.sparsity.permutation.search import search


def uniform(seed: int, rows: int = 128, columns: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, columns), dtype=np.float32)


def normal(seed: int, rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)


def mean_regained(seconds: float, seeds: int) -> tuple[float, float, float]:
    found = [search(uniform(seed), seconds=seconds, seed=seed) for seed in range(seeds)]
    shares = [one.regained for one in found]
    return statistics.mean(shares), statistics.stdev(shares), max(one.seconds for one in found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--curve", action="store_true", help="also print longer searches and larger matrices")
    options = parser.parse_args()
    search(uniform(0), seconds=0.01)  # compiles

    mean, spread, slowest = mean_regained(0.1, 20)
    expect(
        "64 columns x 128 rows, uniform, 20 seeds, 0.1 s", mean >= 0.33, f"{mean:.2%} (sd {spread:.2%}), slowest {slowest:.3f} s", ">= 33 %"
    )
    large = search(normal(0, 512, 2048), seconds=19)
    figure = f"{large.regained:.2%} in {large.seconds:.1f} s{'' if large.complete else ' (cut by the clock)'}"
    expect("2048 columns x 512 rows, normal", large.regained >= 0.24 and large.seconds < 20, figure, ">= 24 % in under 20 s")
    if options.curve:
        for seconds, seeds in ((0.003, 20), (0.01, 20), (0.03, 20), (0.1, 20), (0.3, 20), (1.0, 20), (10.0, 5)):
            mean, spread, _ = mean_regained(seconds, seeds)
            print(f"curve 64 x 128: {seconds:6.3f} s: {mean:.2%} (sd {spread:.2%}, {seeds} seeds)", flush=True)
        for size in (256, 512, 1024, 2048, 4096):
            for seconds in (1.0, 10.0):
                found = search(normal(0, size, size), seconds=seconds)
                print(f"scale {size} x {size}, normal: {seconds:4.1f} s: {found.regained:.2%} (took {found.seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
