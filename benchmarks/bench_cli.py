"""Whole-process times of the light commands: --help under 0.15 s, tactics on a small log under 0.25 s, a cached quickstart under 3 s."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import expect

ROOT = Path(__file__).resolve().parent.parent
RUNS = 9
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As an installed command runs: from compiled modules."""


def median_seconds(*words: str, runs: int = RUNS) -> float:
    """Median wall time of a command."""
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "pipeline", *words], check=False, capture_output=True, cwd=ROOT, env=ENVIRONMENT)
        if done.returncode not in (0, 3):  # 3: an inconclusive verdict is a verdict too
            raise SystemExit(done.stderr.decode())
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def main() -> None:
    interpreter = statistics.median(_interpreter() for _ in range(RUNS))
    print(f"     python -c pass: {interpreter:.3f} s (included in the figures below)")
    helped = median_seconds("--help")
    expect("sparsegate --help", helped < 0.15, f"{helped:.3f} s", "< 0.15 s")
    log = next(iter(sorted((ROOT / "recipes" / "samples").glob("*.log"))))
    read = median_seconds("tactics", str(log))
    expect(f"sparsegate tactics {log.name}", read < 0.25, f"{read:.3f} s", "< 0.25 s")
    if "--quickstart" in sys.argv:
        cached = median_seconds("run", "recipes/quickstart.yaml", "--quiet", runs=3)
        expect("cached quickstart", cached < 3.0, f"{cached:.3f} s", "< 3 s")


def _interpreter() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
