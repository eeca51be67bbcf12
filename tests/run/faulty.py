"""A small recipe to break, and processes that break on it. Shared by the tests of faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.records.evidence import read_evidence
from pipeline.run import all_runs

DRIVER = Path(__file__).with_name("faults.py")
ROOT = DRIVER.parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

NET = """\
from torch import nn


def build():
    return nn.Sequential(nn.Linear(12, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.1), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 4))
"""

RECIPE = """\
name: faults
model: {python: 'net.py:build'}
data: {npz: data.npz}
train: {dense: {epochs: 4, lr: 0.1}, finetune: {epochs: 3, lr: 0.05}, threads: 1}
export: {batch: {min: 1, opt: 4, max: 8}}
measure: {seconds: 0.3, warmup_seconds: 0.2, rounds: 3, block_ms: 2, layer_passes: 0}
gate:
  rules:
    - {kind: quality, drop_at_most: 0.2}
    - {kind: rungs, rung: exported, at_least: all}
    - {kind: size, over: dense, size: archive, at_most: 1.0}
"""


def write_recipe(folder: Path) -> Path:
    """A recipe of a few seconds: a small perceptron, dense and 2:4, on drawn points."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for number, (split, count) in enumerate((("train", 256), ("select", 64), ("test", 256))):
        x = np.random.default_rng(number).normal(size=(count, 12)).astype(np.float32)
        arrays |= {f"{split}_x": x, f"{split}_label": (x[:, 0] > 0) * 2 + (x[:, 1] > 0)}
    np.savez(folder / "data.npz", **arrays)
    (folder / "net.py").write_text(NET)
    (folder / "faults.yaml").write_text(RECIPE)
    return folder / "faults.yaml"


class Forks:
    """Runs the command line with faults, each time in a new fork of a process that has done its imports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = subprocess.Popen(
            [sys.executable, str(DRIVER), "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        assert self._server.stdout is not None and self._server.stdout.readline() == "ready\n"

    def __call__(self, fault: str, *args: Any) -> tuple[int, str]:
        """Exit status (negative for a signal) and everything that was printed."""
        assert self._server.stdin is not None and self._server.stdout is not None
        output = self._folder / "output.txt"
        self._server.stdin.write(json.dumps([str(output), fault, *map(str, args)]) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline()), output.read_text()

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=30)


def results(workspace: Path) -> dict[str, Any]:
    """What must not depend on interruptions: digests of frozen weights and masks, and the rules that time does not decide."""
    evidence = read_evidence(all_runs(workspace, "faults")[-1])
    assert evidence.train is not None and evidence.freeze is not None and evidence.gate is not None
    return {
        "masks": evidence.train.mask_digest,
        "frozen": evidence.freeze.sparse.sha256,
        "rules": [(rule.id, str(rule.outcome), rule.value) for rule in evidence.gate.rules if rule.kind != "latency"],
    }


def leftovers(workspace: Path) -> list[str]:
    """Names in the store that are neither whole outputs nor locks."""
    found = []
    for path in sorted((workspace / "engines" / "faults").iterdir()):
        if path.name.endswith(".partial") or not ((path / "output.json").is_file() or path.name.endswith(".lock")):
            found.append(path.name)
        found += [str(inner) for inner in path.rglob(".*")] if path.is_dir() else []
        found += [str(inner) for inner in path.rglob("*.resume")] if path.is_dir() and not path.name.endswith(".partial") else []
    return found
